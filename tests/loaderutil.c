/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader's tests share; see loaderutil.h. */
#include "tests/loaderutil.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = 16, GRAY_SIDE = 16, LABELS = 7, MAX_BATCHES = 4096 };

static uint64_t memory_count(void *user)
{
    return ((test_memory *)user)->n;
}

static int64_t memory_read(void *user, uint64_t i, void *buf, size_t cap)
{
    const test_memory *m = user;
    const size_t k = (size_t)(i % (uint64_t)m->kinds);

    memcpy(buf, m->file[k], m->len[k] < cap ? m->len[k] : cap);
    return (int64_t)m->len[k];
}

static int32_t memory_label(void *user, uint64_t i)
{
    (void)user;
    return (int32_t)(i % LABELS);
}

static void memory_init(test_memory *m, uint64_t n)
{
    memset(m, 0, sizeof *m);
    m->n = n;
    m->kinds = KINDS;
    m->source = (dpl_source){ m, memory_count, memory_read, memory_label, NULL };
}

uint8_t test_gray_value(uint64_t i)
{
    return (uint8_t)(i % KINDS * 15 + 7);
}

void test_memory_gray(test_memory *m, uint64_t n)
{
    /* One value over the whole picture is one DC coefficient: exact at quality 100. */
    const tool_jpeg_spec spec = { .quality = 100, .color = TOOL_JPEG_GRAY };
    uint8_t rgb[GRAY_SIDE * GRAY_SIDE * 3];

    memory_init(m, n);
    for (int k = 0; k < KINDS; k++) {
        memset(rgb, test_gray_value((uint64_t)k), sizeof rgb);
        assert_int_equal(tool_jpeg_write(&spec, rgb, GRAY_SIDE, GRAY_SIDE, &m->file[k], &m->len[k]),
                         DPL_OK);
    }
}

void test_memory_pictures(test_memory *m, uint64_t n)
{
    memory_init(m, n);
    for (int k = 0; k < KINDS; k++)
        m->file[k] = test_jpeg(40 + 3 * k, 90 - 2 * k, (uint64_t)k, NULL, &m->len[k]);
}

void test_memory_free(test_memory *m)
{
    for (int k = 0; k < KINDS; k++) free(m->file[k]);
    memset(m, 0, sizeof *m);
}

dpl_options test_loader_options(const test_memory *m)
{
    dpl_options opt;

    dpl_options_init(&opt, sizeof opt);
    opt.source = &m->source;
    opt.batch = 8;
    opt.workers = 2;
    opt.width = opt.height = 16;
    return opt;
}

uint64_t test_hash(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

size_t test_picture_bytes(const dpl_batch *b)
{
    static const size_t bytes[] = { 1, 4, 2, 2 };

    return (size_t)b->width * (size_t)b->height * 3 * bytes[b->dtype];
}

static uint64_t trace_batch(const dpl_batch *b, test_entry *at)
{
    const size_t bytes = test_picture_bytes(b);
    uint64_t n = 0;

    for (int p = 0; p < b->parts; p++) {
        const dpl_part *part = &b->part[p];

        for (int k = 0; k < part->n; k++)
            at[n++] =
                (test_entry){ part->ids[k],
                              test_hash((const char *)part->pixels + (size_t)k * bytes, bytes),
                              part->labels[k] };
    }
    assert_int_equal(n, (uint64_t)b->n);
    return n;
}

uint64_t test_trace(const dpl_options *opt, uint64_t epoch, test_entry *trace, uint64_t cap)
{
    uint64_t *done = calloc(MAX_BATCHES, sizeof *done); /* samples of each batch so far */
    uint64_t total = 0;

    assert_non_null(done);
    for (int r = 0; r < opt->world; r++) {
        dpl_options mine = *opt;
        dpl_loader *l;
        dpl_batch b;
        int err;

        mine.rank = r;
        if (dpl_open(&l, &mine)) fail_msg("open: %s", dpl_error_text(NULL));
        assert_int_equal(dpl_set_epoch(l, epoch), DPL_OK);
        while (!(err = dpl_next(l, &b, -1))) {
            assert_int_equal(b.epoch, epoch);
            assert_true(b.index < MAX_BATCHES);
            assert_true(b.first + done[b.index] + (uint64_t)b.n <= cap);
            done[b.index] += trace_batch(&b, trace + b.first + done[b.index]);
            total += (uint64_t)b.n;
            dpl_release(l, &b, NULL);
        }
        if (err != DPL_EOF) fail_msg("next: %s", dpl_error_text(l));
        dpl_close(&l);
    }
    free(done);
    return total;
}
