/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation: every validation picture once, counts summed over devices and batches, divided at the
 * end. No average of averages. */
#include "base/clock.h"
#include "trainer/interrupt.h"
#include "trainer/loop.h"

#include <string.h>

void dpt_loop_parts(const dpl_batch *b, dpt_team_part *part)
{
    for (int i = 0; i < b->parts; i++)
        part[i] = (dpt_team_part){ .pixels = b->part[i].pixels,
                                   .labels = b->part[i].labels,
                                   .labels2 = b->part[i].labels2,
                                   .mix = b->part[i].mix,
                                   .n = b->part[i].n };
}

/* A batch without a picture is evaluated, too, when others may have some of theirs. */
static int step(dpt_run *r, dpt_pass *pass, const dpl_batch *b, int64_t t0, int64_t t1,
                dpl_text *why)
{
    dpt_team_part part[DPT_LOOP_PARTS];
    dpt_sums sums = { 0 };
    int64_t t2;
    int err = DPL_OK;

    dpt_loop_parts(b, part);
    for (int i = 0; i < b->parts; i++) part[i].labels2 = NULL; /* hard labels alone count */
    if (b->n || r->world > 1) err = dpt_team_evaluate(r->team, part, &sums, why);
    if (err == DPL_ECANCELED && r->world == 1) return DPT_EXIT_DONE; /* not counted */
    if (err) return dpt_exit_of(err);
    t2 = dpl_now_ns();
    dpt_pass_step(pass, &sums, b->planned, (double)(t2 - t0) / 1e9, (double)(t1 - t0) / 1e9,
                  (double)(t2 - t1) / 1e9);
    dpt_report_step(r->report, pass);
    return DPT_EXIT_DONE;
}

int dpt_loop_evaluate(dpt_run *r, dpt_pass *pass, dpl_text *why)
{
    int rc = DPT_EXIT_DONE;

    dpt_report_begin(r->report, pass);
    while (!rc) {
        const int64_t t0 = dpl_now_ns();
        dpl_batch b;
        const int err = dpt_loop_next(r, r->val, dpt_team_streams(r->team), &b, pass);

        if (err == DPL_EOF || err == DPL_ECANCELED) break;
        if (err) {
            rc = dpt_loop_data_error(r, r->val, err, why);
            break;
        }
        rc = step(r, pass, &b, t0, dpl_now_ns(), why);
        dpl_release(r->val, &b, NULL); /* nothing is queued any more */
        dpt_loop_name_bad(r, r->val, &r->named_val);
    }
    dpt_report_wipe(r->report);
    return rc;
}
