/* SPDX-License-Identifier: Apache-2.0 */
/* The loader beside its decoder: the same samples as batches, and decoded by libjpeg alone, on the
 * same threads. The workers run the second kind as a task while the loader is paused. */
#include "loader/loader.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/decode_jpeg_bare.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MAX = 1000 };

/* One sample of a round: what the loader asks of its decoder. */
typedef struct sample {
    uint64_t epoch, id;
    void *file;
    size_t cap, len;
    int ok, is_jpeg;
    dpl_box shown, stored;
    int denominator;
    int err; /* of the loader's own making: no memory */
} sample;

typedef struct measure {
    dpl_loader *l;
    uint64_t epoch, index; /* the round's first batch */
    uint64_t batches;
    sample *sample; /* [cap] */
    size_t n, cap;
    dpl_bare **bare; /* [workers] */
} measure;

/* What a phase took. */
typedef struct cost {
    double wall_s, cpu_s;
} cost;

typedef struct round {
    double images_per_s, bare_per_s, ratio, cpu_ratio;
} round;

/* --- clocks --- */

static double cpu_seconds(const dpl_loader *l)
{
    double sum = 0;

    for (int k = 0; k < l->workers; k++) {
        struct timespec ts;
        clockid_t clock;

        if (pthread_getcpuclockid(l->worker[k].thread, &clock) || clock_gettime(clock, &ts))
            continue;
        sum += (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
    }
    return sum;
}

static cost mark(const dpl_loader *l)
{
    return (cost){ (double)dpl_now_ns() * 1e-9, cpu_seconds(l) };
}

static cost since(const dpl_loader *l, const cost *start)
{
    const cost now = mark(l);

    return (cost){ now.wall_s - start->wall_s, now.cpu_s - start->cpu_s };
}

/* --- tasks, on the workers' threads --- */

/* Read the file, and find out what the loader decodes of it. */
static void prepare_sample(dpl_worker *w, void *arg, uint64_t k)
{
    measure *m = arg;
    const dpl_loader *l = m->l;
    sample *s = &m->sample[k];
    dpl_text why;
    dpl_plan plan;
    dpl_pixels px;
    const char *name;
    char buf[64];
    int warned, width, height;

    s->ok = 0;
    s->err = l->samples->ops->read(l->samples, s->id, &s->file, &s->cap, &s->len,
                                   l->opt.max_file_bytes, &why);
    if (s->err) return;
    s->err = dpl_prepare_decode(w, s->file, s->len, s->epoch, s->id, &plan, &px, &warned, &why);
    if (s->err || (s->err = dpl_decode_begin(w->decoder, s->file, s->len, &width, &height, &why)))
        return;
    dpl_plan_region(&plan, &l->recipe, &s->shown.x, &s->shown.y, &s->shown.w, &s->shown.h);
    s->denominator = px.denominator;
    s->is_jpeg = dpl_sniff(s->file, s->len, &name, buf) == DPL_FORMAT_JPEG;
    if (s->is_jpeg)
        s->stored = dpl_bare_box(s->file, s->len, l->limits.exif, width, height, &s->shown);
    s->ok = 1;
}

static void decode_sample(dpl_worker *w, void *arg, uint64_t k)
{
    const measure *m = arg;
    const sample *s = &m->sample[k];
    dpl_text why;
    dpl_pixels px;
    int warned, width, height;

    if (!s->ok) return;
    if (s->is_jpeg)
        dpl_bare_decode(m->bare[w->index], s->file, s->len, &s->stored, s->denominator);
    else if (!dpl_decode_begin(w->decoder, s->file, s->len, &width, &height, &why))
        dpl_decode_region(w->decoder, s->shown.x, s->shown.y, s->shown.w, s->shown.h,
                          s->denominator, &px, &warned, &why);
}

/* Run a task for every sample. @return DPL_OK, DPL_ECANCELED */
static int run_task(measure *m, void (*run)(dpl_worker *, void *, uint64_t))
{
    dpl_loader *l = m->l;
    int err = DPL_OK;

    pthread_mutex_lock(&l->lock);
    dpl_loader_pause(l);
    l->task = (dpl_task){ run, m, 0, m->n };
    pthread_cond_broadcast(&l->work);
    while (!l->stopping && (l->task.next < l->task.count || l->busy))
        pthread_cond_wait(&l->idle, &l->lock);
    if (l->canceled) err = dpl_fail(&l->error, DPL_ECANCELED, "canceled");
    l->task.next = l->task.count = 0;
    while (l->busy) pthread_cond_wait(&l->idle, &l->lock); /* m must outlive them */
    pthread_mutex_unlock(&l->lock);
    return err;
}

/* --- a round --- */

/* Batch q of the round. @return 0 when the options have no such epoch */
static int batch_of(const measure *m, uint64_t q, uint64_t *epoch, uint64_t *index)
{
    const uint64_t at = m->index + q;

    *epoch = m->epoch + at / m->l->steps.count;
    *index = at % m->l->steps.count;
    return dpl_epoch_exists(m->l, *epoch);
}

/* Room for n samples more; new entries are zero. */
static int grow(measure *m, size_t n)
{
    const size_t had = m->cap;
    void *p = m->sample;
    const int err = dpl_grow(&p, &m->cap, m->n + n, sizeof *m->sample);

    m->sample = p;
    if (m->cap > had) memset(m->sample + had, 0, (m->cap - had) * sizeof *m->sample);
    return err ? dpl_fail(&m->l->error, err, "no memory to measure") : DPL_OK;
}

/* The samples of the round's batches, in order. */
static int list_samples(measure *m)
{
    const dpl_loader *l = m->l;
    uint64_t epoch, index, first, n;

    m->n = 0;
    for (uint64_t q = 0; q < m->batches; q++) {
        dpl_permutation order;
        int err;

        if (!batch_of(m, q, &epoch, &index))
            return dpl_fail(&m->l->error, DPL_EINVAL,
                            "the rounds go past the last epoch; open the loader with epochs 0");
        dpl_permutation_init(&order, l->samples->count, l->opt.seed, epoch);
        dpl_steps_rank(&l->steps, index, l->opt.rank, l->opt.world, &first, &n);
        if ((err = grow(m, (size_t)n))) return err;
        for (uint64_t k = 0; k < n; k++, m->n++) {
            m->sample[m->n].epoch = epoch;
            m->sample[m->n].id = dpl_sample_at(l, &order, first + k);
        }
    }
    return DPL_OK;
}

/* Bad samples cost both sides next to nothing and stay; memory that ran out does not. */
static int prepare_round(measure *m)
{
    int err = list_samples(m);

    if (!err) err = run_task(m, prepare_sample);
    for (size_t k = 0; k < m->n && !err; k++)
        if (m->sample[k].err && m->sample[k].err != DPL_EDATA && m->sample[k].err != DPL_EIO)
            err = dpl_fail(&m->l->error, m->sample[k].err, "no memory to measure");
    return err;
}

static int run_bare(measure *m, cost *c)
{
    const cost start = mark(m->l);
    const int err = run_task(m, decode_sample);

    *c = since(m->l, &start);
    return err;
}

static int run_loader(measure *m, cost *c)
{
    dpl_loader *l = m->l;
    const cost start = mark(l);
    int err;

    pthread_mutex_lock(&l->lock);
    if (!(err = dpl_loader_check_idle(l))) {
        dpl_loader_restart(l, m->epoch, m->index);
        l->claim_end = m->batches;
        l->at_eof = 0;
    }
    pthread_mutex_unlock(&l->lock);
    for (uint64_t q = 0; q < m->batches && !err;) {
        dpl_batch b;

        if ((err = dpl_next(l, &b, -1)) == DPL_EOF) {
            err = DPL_OK;
        } else if (!err) {
            dpl_release(l, &b, NULL);
            q++;
        }
    }
    *c = since(l, &start);
    return err;
}

/* What runs second finds caches and clock rate as the first left them: they take turns. */
static int run_round(measure *m, int number, round *out)
{
    cost loader = { 0, 0 }, bare = { 0, 0 };
    int err = prepare_round(m);

    if (!err) err = number % 2 ? run_loader(m, &loader) : run_bare(m, &bare);
    if (!err) err = number % 2 ? run_bare(m, &bare) : run_loader(m, &loader);
    if (err) return err;
    *out = (round){ .images_per_s = (double)m->n / loader.wall_s,
                    .bare_per_s = (double)m->n / bare.wall_s,
                    .ratio = bare.wall_s / loader.wall_s,
                    .cpu_ratio = loader.cpu_s > 0 ? bare.cpu_s / loader.cpu_s : 0 };
    batch_of(m, m->batches, &m->epoch, &m->index);
    return DPL_OK;
}

/* --- all rounds --- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts v. */
static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void summarise(dpl_limit *out, const round *r, int n)
{
    double v[ROUNDS_MAX];

    for (int i = 0; i < n; i++) v[i] = r[i].images_per_s;
    out->images_per_s = median(v, n);
    for (int i = 0; i < n; i++) v[i] = r[i].bare_per_s;
    out->bare_per_s = median(v, n);
    for (int i = 0; i < n; i++) v[i] = r[i].cpu_ratio;
    out->cpu_ratio = median(v, n);
    for (int i = 0; i < n; i++) v[i] = r[i].ratio;
    out->ratio = median(v, n);
    out->ratio_min = v[0];
    out->ratio_max = v[n - 1];
    out->rounds = n;
}

static int create(measure *m)
{
    const size_t n = (size_t)m->l->workers;
    int err = DPL_OK;

    if (!(m->bare = dpl_calloc(n, sizeof *m->bare))) err = DPL_ENOMEM;
    for (size_t k = 0; k < n && !err; k++) err = dpl_bare_create(&m->bare[k]);
    return err ? dpl_fail(&m->l->error, err, "no memory to measure") : DPL_OK;
}

static void destroy(measure *m)
{
    for (int k = 0; m->bare && k < m->l->workers; k++) dpl_bare_destroy(&m->bare[k]);
    for (size_t k = 0; k < m->cap; k++) free(m->sample[k].file);
    free(m->bare);
    free(m->sample);
}

static int measure_rounds(measure *m, int rounds, dpl_limit *out)
{
    round r[ROUNDS_MAX];
    int err = create(m);

    for (int i = 0; i < rounds && !err; i++) {
        err = run_round(m, i, &r[i]);
        out->images += m->n;
    }
    if (!err) summarise(out, r, rounds);
    destroy(m);
    return err;
}

int dpl_limit_measure(dpl_loader *l, int batches, int rounds, dpl_limit *out)
{
    measure m = { .l = l };
    dpl_state before;
    int err;

    memset(out, 0, sizeof *out);
    if ((err = dpl_loader_check_process(l))) return err;
    if (batches < 1 || rounds < 1 || rounds > ROUNDS_MAX)
        return dpl_fail(&l->error, DPL_EINVAL,
                        "dpl_limit_measure: %d batches, %d rounds; expected at least 1, 1..%d",
                        batches, rounds, ROUNDS_MAX);
    m.batches = (uint64_t)batches;
    dpl_state_get(l, &before);
    pthread_mutex_lock(&l->lock);
    if (!(err = dpl_loader_check_idle(l))) dpl_position_of(l, l->deliver_seq, &m.epoch, &m.index);
    pthread_mutex_unlock(&l->lock);
    if (err) return err;
    err = measure_rounds(&m, rounds, out);
    if (err) return err; /* its text is to stay: failed or canceled, no batch comes any more */
    return dpl_state_set(l, &before);
}
