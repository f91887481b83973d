/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain devices: what there is to train on, and for what is missing one line why. */
#include "base/cpu.h"
#include "base/json_out.h"
#include "base/optparse.h"
#include "base/thread.h"
#include "dpload.h"
#include "trainer/backend.h"
#include "trainer/cli.h"
#include "trainer/devices.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct values {
    int json;
} values;

static const dpl_opt table[] = { { "json", 0, NULL, DPL_OPT_FLAG, offsetof(values, json), 0, 0,
                                   NULL, NULL, "one JSON object on standard output", NULL, 1 },
                                 { NULL, 0, NULL, DPL_OPT_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL,
                                   0 } };

static const dpl_opt_spec spec = {
    .program = "dptrain devices",
    .usage = "[options]",
    .summary = "List what --devices can name here, and say why the rest is missing.",
    .examples = "dptrain devices\nCUDA_DEVICE_ORDER=PCI_BUS_ID dptrain devices   (numbers as "
                "nvidia-smi counts)\n",
    .opts = table,
};

static const char *const backends[] = { "dnnl", "ref" };
enum { BACKENDS = sizeof backends / sizeof *backends };

static int has_gpu_training(const dpt_devices *d)
{
    return d->gpus && !*d->no_training.s;
}

/* --- text --- */

static void print_cpu(FILE *out)
{
    const char *limit;
    const int cores = dpl_cpus_usable(&limit);

    fprintf(out, "cpu       %d usable core%s (%s), %s; backends:", cores, cores == 1 ? "" : "s",
            limit, dpl_cpu_name(dpl_cpu_flags()));
    for (int i = 0; i < BACKENDS; i++)
        if (dpt_backend_find(backends[i], NULL)) fprintf(out, " %s", backends[i]);
    fputs(dpt_backend_find("dnnl", NULL) ? "\n" : " (slow: this build has no oneDNN)\n", out);
}

static void print_gpus(const dpt_devices *d, FILE *out)
{
    char text[512];

    if (!d->gpus) fprintf(out, "cuda      none: %s\n", d->no_gpu.s);
    for (int i = 0; i < d->gpus; i++)
        fprintf(out, "cuda:%-4d %s, %s\n", d->gpu[i].index,
                dpt_gpu_text(text, sizeof text, &d->gpu[i]), d->gpu[i].uuid);
    if (*d->no_training.s) fprintf(out, "no training on GPUs: %s\n", d->no_training.s);
    if (dpt_gpu_order_differs(d->gpu, d->gpus))
        fputs(
            "numbers follow CUDA's order, the fastest first, and nvidia-smi counts by PCI address; "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID makes both the same\n",
            out);
}

static void print_text(const dpt_devices *d, FILE *out)
{
    print_cpu(out);
    print_gpus(d, out);
    fprintf(out, "--devices auto is %s\n",
            has_gpu_training(d) ? "cuda, all that can be used" : "cpu");
}

/* --- JSON --- */

static void json_cpu(dpl_json *j)
{
    const char *limit;

    dpl_json_object(j, "cpu");
    dpl_json_int(j, "usable_cores", dpl_cpus_usable(&limit));
    dpl_json_string(j, "limit", limit);
    dpl_json_string(j, "level", dpl_cpu_name(dpl_cpu_flags()));
    dpl_json_array(j, "backends");
    for (int i = 0; i < BACKENDS; i++)
        if (dpt_backend_find(backends[i], NULL)) dpl_json_string(j, NULL, backends[i]);
    dpl_json_end(j);
    dpl_json_end(j);
}

static void json_gpu(dpl_json *j, const dpl_gpu_info *g)
{
    char text[32];

    dpl_json_object(j, NULL);
    snprintf(text, sizeof text, "cuda:%d", g->index);
    dpl_json_string(j, "device", text);
    dpl_json_string(j, "outside", g->outside);
    dpl_json_string(j, "name", g->name);
    dpl_json_uint(j, "memory_bytes", g->memory);
    snprintf(text, sizeof text, "%d.%d", g->major, g->minor);
    dpl_json_string(j, "compute_capability", text);
    dpl_json_string(j, "pci", g->pci);
    dpl_json_string(j, "uuid", g->uuid);
    dpl_json_end(j);
}

static void print_json(const dpt_devices *d, FILE *out)
{
    dpl_json j;

    dpl_json_begin(&j, out);
    dpl_json_object(&j, NULL);
    dpl_json_string(&j, "version", dpl_version());
    dpl_json_string(&j, "auto", has_gpu_training(d) ? "cuda" : "cpu");
    json_cpu(&j);
    dpl_json_array(&j, "gpus");
    for (int i = 0; i < d->gpus; i++) json_gpu(&j, &d->gpu[i]);
    dpl_json_end(&j);
    dpl_json_string(&j, "no_gpu", *d->no_gpu.s ? d->no_gpu.s : NULL);
    dpl_json_string(&j, "no_gpu_training", *d->no_training.s ? d->no_training.s : NULL);
    dpl_json_string(&j, "CUDA_VISIBLE_DEVICES", getenv("CUDA_VISIBLE_DEVICES"));
    dpl_json_string(&j, "CUDA_DEVICE_ORDER", getenv("CUDA_DEVICE_ORDER"));
    dpl_json_end(&j);
    fputc('\n', out);
}

int dpt_devices_main(int argc, char **argv, FILE *out, dpl_text *why)
{
    values v = { 0 };
    dpt_devices d;
    int operand = 0;
    const int rc = dpl_opt_parse(&spec, argc, argv, &v, NULL, &operand, out, why);

    if (rc < 0) return dpt_exit_of(rc);
    if (rc == DPL_OPT_HELPED) return DPT_EXIT_DONE;
    if (operand < argc)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "devices takes no \"%s\"; a folder of that name is trained on as ./devices",
                        argv[operand]);
    dpt_devices_find(&d, 1);
    (v.json ? print_json : print_text)(&d, out);
    dpt_devices_free(&d);
    return DPT_EXIT_DONE;
}
