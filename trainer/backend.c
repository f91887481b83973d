/* SPDX-License-Identifier: Apache-2.0 */
/* Which backends this build has. */
#include "trainer/backend.h"

#include "dpload.h"

#include <string.h>

#ifdef DPT_HAVE_DNNL
static const dpt_backend *const backends[] = { &dpt_backend_dnnl, &dpt_backend_ref };
static const char there_are[] = "there are auto, dnnl, ref";
#else
static const dpt_backend *const backends[] = { &dpt_backend_ref };
static const char there_are[] = "there are auto, ref (dnnl was not built in: oneDNN was not found)";
#endif

const dpt_backend *dpt_backend_find(const char *name, dpl_text *why)
{
    if (strcmp(name, "auto") == 0) return backends[0]; /* the fastest comes first */
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    }
    dpl_fail(why, DPL_ENOTSUP, "no backend \"%s\": %s", name, there_are);
    return NULL;
}
