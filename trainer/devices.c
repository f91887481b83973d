/* SPDX-License-Identifier: Apache-2.0 */
/* Finding out what there is to train on, and saying it. */
#include "trainer/devices.h"

#include "dpload.h"
#include "trainer/report.h"
#include "trainer/trainer_plugin.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void dpt_devices_find(dpt_devices *d, int all)
{
    const dpt_trainer_plugin *plugin;
    dpl_text plugin_why;
    const int n = dpl_gpu_list(&d->gpu, &d->no_gpu);

    d->gpus = n > 0 ? n : 0;
    if (n > 0) d->no_gpu.s[0] = '\0';
    d->no_training.s[0] = '\0';
    for (int i = 0; i < d->gpus; i++) {
        if (dpt_gpu_check(&d->gpu[i], &d->no_training)) continue;
        d->no_training.s[0] = '\0';
        break;
    }
    if (n <= 0 && !all) return;
    if (dpt_plugin_cuda(&plugin, &plugin_why)) d->no_training = plugin_why;
}

void dpt_devices_free(dpt_devices *d)
{
    free(d->gpu);
    d->gpu = NULL;
    d->gpus = 0;
}

const char *dpt_gpu_text(char *buf, size_t len, const dpl_gpu_info *g)
{
    const int is_number = isdigit((unsigned char)*g->outside);
    char outside[128] = "", memory[32];

    if (getenv("CUDA_VISIBLE_DEVICES"))
        snprintf(outside, sizeof outside, "%s%s, ", is_number ? "GPU " : "", g->outside);
    snprintf(buf, len, "%s%s, %s, compute capability %d.%d, PCI %s", outside, g->name,
             dpt_format_bytes(memory, (double)g->memory), g->major, g->minor, g->pci);
    return buf;
}

int dpt_gpu_check(const dpl_gpu_info *g, dpl_text *why)
{
    if (g->major >= DPT_GPU_OLDEST) return DPL_OK;
    return dpl_fail(why, DPL_ENOTSUP,
                    "cuda:%d: %s has compute capability %d.%d, and training needs %d.0 or later",
                    g->index, g->name, g->major, g->minor, DPT_GPU_OLDEST);
}

int dpt_gpu_order_differs(const dpl_gpu_info *gpu, int gpus)
{
    const char *order = getenv("CUDA_DEVICE_ORDER"), *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (order && !strcmp(order, "PCI_BUS_ID")) return 0;
    if (visible) return strpbrk(visible, "0123456789") && !strstr(visible, "-") ? -1 : 0;
    for (int i = 1; i < gpus; i++)
        if (strcmp(gpu[i - 1].pci, gpu[i].pci) > 0) return 1;
    return 0;
}

const char *dpt_first_clause(char *buf, size_t len, const char *text)
{
    static const char *const ends[] = { " (", ": ", ";" };
    size_t n = strlen(text);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *at = strstr(text, ends[i]);

        if (at && (size_t)(at - text) < n) n = (size_t)(at - text);
    }
    snprintf(buf, len, "%.*s", (int)n, text);
    return buf;
}
