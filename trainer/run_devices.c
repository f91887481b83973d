/* SPDX-License-Identifier: Apache-2.0 */
/* --devices: which devices share a batch, and what they are outside of this process. */
#include "base/alloc.h"
#include "device/device.h"
#include "trainer/devices.h"
#include "trainer/run.h"
#include "trainer/trainer_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* --- which --- */

static int is_auto(const char *list)
{
    list += strspn(list, " \t");
    return !strncmp(list, "auto", 4) && !list[4 + strspn(list + 4, " \t")];
}

/* All GPUs, when there are some that this program can train on. */
static const char *choose(const dpt_run *r)
{
    char clause[128];
    dpt_devices d;
    int usable;

    dpt_devices_find(&d, 0);
    usable = d.gpus && !*d.no_training.s;
    if (!d.gpus)
        dpt_report_note(r->report, "devices: cpu (%s)",
                        dpt_first_clause(clause, sizeof clause, d.no_gpu.s));
    else if (!usable)
        dpt_report_note(r->report, "devices: cpu and not the GPU%s: %s", plural(d.gpus),
                        d.no_training.s);
    dpt_devices_free(&d);
    return usable ? "cuda" : "cpu";
}

/* Open a device once: its spec is checked, and it is there and free. */
static int try_device(const char *spec, dpl_device_kind *kind, dpl_text *why)
{
    dpl_device *d = NULL;
    const int err = dpl_device_open(&d, spec, why);

    if (!err) *kind = dpl_device_get_kind(d);
    dpl_device_close(&d);
    return err;
}

static int is_gpu(const char *spec)
{
    return !strncmp(spec, "cuda:", 5);
}

static int number_of(const char *spec)
{
    return atoi(spec + strlen("cuda:"));
}

/* The GPUs that are visible: asked for once, as their description takes the driver a while. */
typedef struct visible {
    dpl_gpu_info *gpu; /* [n] */
    int n;
} visible;

static visible look(void)
{
    visible v = { NULL, 0 };

    v.n = dpl_gpu_list(&v.gpu, NULL);
    if (v.n < 0) v = (visible){ NULL, 0 };
    return v;
}

/* Can this program train on it? A GPU that is not there is found out elsewhere. */
static int check_gpu(const visible *v, const char *spec, dpl_text *why)
{
    const int k = number_of(spec);

    return k < v->n ? dpt_gpu_check(&v->gpu[k], why) : DPL_OK;
}

/* Leave out the GPUs that nobody named and that cannot be used. @return how many are left */
static int drop_unusable(const dpt_run *r, char **spec, int n)
{
    const visible v = look();
    dpl_device_kind kind;
    int kept = 0;

    for (int i = 0; i < n; i++) {
        dpl_text why;

        if (check_gpu(&v, spec[i], &why) || try_device(spec[i], &kind, &why))
            dpt_report_warn(r->report, "%s; it is left out", why.s);
        else
            spec[kept++] = spec[i];
    }
    free(v.gpu);
    return kept;
}

static int kinds_differ(const dpt_run *r, const char *one, const char *other, dpl_text *why)
{
    const int sim = !strncmp(one, "sim", 3) || !strncmp(other, "sim", 3);

    return dpl_fail(why, DPT_EXIT_USAGE,
                    "--devices %s: %s and %s cannot share a batch: %s; use devices of one kind",
                    r->opt->devices, one, other,
                    sim ? "a simulated device computes nothing"
                        : "the GPU would wait for the processor at every step");
}

static int check_devices(dpt_run *r, char *const *spec, int n, dpl_text *why)
{
    dpl_device_kind first = DPL_DEVICE_CPU, kind = DPL_DEVICE_CPU;

    for (int i = 1; i < n; i++) /* is wrong whether or not the devices are there */
        if (is_gpu(spec[i]) != is_gpu(spec[0])) return kinds_differ(r, spec[0], spec[i], why);
    for (int i = 0; i < n; i++) {
        const int err = try_device(spec[i], &kind, why);

        if (err) {
            dpl_text_prefix(why, "--devices %s", r->opt->devices);
            return dpt_exit_of(err);
        }
        if (!i) first = kind;
        if (kind != first) return kinds_differ(r, spec[0], spec[i], why);
    }
    r->sim = first == DPL_DEVICE_SIM;
    r->cuda = first == DPL_DEVICE_CUDA;
    return DPT_EXIT_DONE;
}

/* --- keeping and saying it --- */

/* The array, its strings and the list in one piece: r->device. */
static int keep(dpt_run *r, char *const *spec, int n, dpl_text *why)
{
    const size_t fixed = (size_t)n * sizeof *r->device;
    size_t bytes = 0;
    char *text, *list;

    for (int i = 0; i < n; i++) bytes += strlen(spec[i]) + 1;
    if (r->cuda) r->gpu = dpl_calloc((size_t)n, sizeof *r->gpu);
    if (!(r->device = dpl_calloc(1, fixed + 2 * bytes)) || (r->cuda && !r->gpu))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    r->devices = n;
    text = (char *)r->device + fixed;
    r->device_text = list = text + bytes;
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(spec[i]);

        if (r->cuda) r->gpu[i] = number_of(spec[i]);
        r->device[i] = memcpy(text, spec[i], len + 1);
        text += len + 1;
        if (i) *list++ = ',';
        list = (char *)memcpy(list, spec[i], len + 1) + len;
    }
    return DPT_EXIT_DONE;
}

/* Which GPUs of the machine these are. */
static void say_gpus(const dpt_run *r, const visible *v)
{
    const int order = v->n > 0 ? dpt_gpu_order_differs(v->gpu, v->n) : 0;
    char text[512];

    for (int i = 0; i < r->devices; i++)
        if (r->gpu[i] < v->n)
            dpt_report_note(r->report, "%s: %s", r->device[i],
                            dpt_gpu_text(text, sizeof text, &v->gpu[r->gpu[i]]));
    if (order > 0)
        dpt_report_note(r->report, "GPUs are counted in CUDA's order, not in that of nvidia-smi; "
                                   "CUDA_DEVICE_ORDER=PCI_BUS_ID makes both the same");
    if (order < 0)
        dpt_report_detail(r->report, "CUDA_VISIBLE_DEVICES counts in CUDA's order, the fastest "
                                     "first; as nvidia-smi only with CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

static int check_training(const dpt_run *r, const visible *v, char *const *spec, int n,
                          dpl_text *why)
{
    const dpt_trainer_plugin *plugin;
    int err;

    if (!r->cuda) return DPT_EXIT_DONE;
    err = dpt_plugin_cuda(&plugin, why);
    for (int i = 0; i < n && !err; i++) err = check_gpu(v, spec[i], why);
    if (!err) return DPT_EXIT_DONE;
    dpl_text_prefix(why, "--devices %s", r->opt->devices);
    return dpt_exit_of(err);
}

static int check_sim(const dpt_run *r, dpl_text *why)
{
    const dpt_options *o = r->opt;

    if (!r->sim || !(o->resume || o->weights || o->evaluate || o->output)) return DPT_EXIT_DONE;
    return dpl_fail(why, DPT_EXIT_USAGE,
                    "--devices %s: a simulated device learns nothing, so there is no %s; leave it "
                    "out",
                    o->devices,
                    o->evaluate  ? "--evaluate"
                    : o->resume  ? "--resume"
                    : o->weights ? "--weights"
                                 : "--output");
}

/* One of several processes takes the GPU of its number on this machine, as with other trainers; all of
 * them when it is alone here, or sees only its own. *list as buf, or "cuda". */
static int choose_own(const dpt_run *r, const char **list, char buf[32], dpl_text *why)
{
    const int rank = r->local_rank;
    const visible v = look();
    const int n = v.n;

    free(v.gpu);
    if (n <= 1 || r->launcher.local_size == 1) return DPT_EXIT_DONE; /* none: the list says why */
    if (rank < 0)
        return dpl_fail(
            why, DPT_EXIT_USAGE,
            "--devices %s: process %d of %d, and nothing says which of the %d GPUs here "
            "is its own; give --local-rank N, or --devices 0-%d for all of them",
            r->opt->devices, r->rank, r->world, n, n - 1);
    if (rank >= n)
        return dpl_fail(why, DPT_EXIT_DEVICE,
                        "--devices %s: number %d on this machine, which has %d GPUs (0-%d): start "
                        "one process for each",
                        r->opt->devices, rank, n, n - 1);
    snprintf(buf, 32, "cuda:%d", rank);
    *list = buf;
    return DPT_EXIT_DONE;
}

/* The devices of this process: *spec is one allocation. @return a dpt_exit */
static int list_devices(const dpt_run *r, char ***spec, int *n, dpl_text *why)
{
    const int asked = is_auto(r->opt->devices);
    const int automatic = asked && r->world == 1; /* several processes share a run on GPUs only */
    const char *list = automatic ? choose(r) : asked ? "cuda" : r->opt->devices;
    char own[32];
    int rc;

    if (r->world > 1 && !strcmp(list, "cuda") && (rc = choose_own(r, &list, own, why))) return rc;
    *n = dpl_device_list_parse(spec, list, why);
    if (*n > 0 && automatic && !strcmp(list, "cuda")) {
        if ((*n = drop_unusable(r, *spec, *n))) return DPT_EXIT_DONE;
        dpt_report_note(r->report, "devices: cpu (no GPU can be used)");
        free(*spec);
        *n = dpl_device_list_parse(spec, "cpu", why);
    }
    if (*n > 0) return DPT_EXIT_DONE;
    if (!strncmp(why->s, "devices: ", 9)) /* of the list; what CUDA says has no such start */
        memmove(why->s, why->s + 9, strlen(why->s + 9) + 1);
    dpl_text_prefix(why, "--devices %s", r->opt->devices);
    return dpt_exit_of(*n);
}

int dpt_run_devices(dpt_run *r, dpl_text *why)
{
    visible v = { NULL, 0 };
    char **spec = NULL;
    int n, rc;

    if ((rc = list_devices(r, &spec, &n, why)) || (rc = check_devices(r, spec, n, why))) goto done;
    if (r->cuda) v = look();
    if ((rc = check_training(r, &v, spec, n, why)) || (rc = keep(r, spec, n, why))) goto done;
    if (r->sim && !dpt_cli_given(r->cli, "epochs")) r->opt->epochs = 1; /* nothing is learned */
    if (r->cuda) say_gpus(r, &v);
    if (!(rc = dpt_run_split(r, why))) rc = check_sim(r, why);
done:
    free(v.gpu);
    free(spec);
    return rc;
}
