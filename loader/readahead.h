/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: threads that read the files of coming samples, in the order in which the workers will
 * want them, into a ring of buffers. Sample number k since the last restart has entry k % entries, so
 * that a worker knows where its bytes will be. A slow source is hidden as long as enough reads are in
 * flight; what is delivered does not depend on it. */
#ifndef DPL_LOADER_READAHEAD_H
#define DPL_LOADER_READAHEAD_H

#include "base/text.h"
#include "dpload.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpl_ahead dpl_ahead;

/** Counters since open; any thread. */
typedef struct dpl_ahead_count {
    uint64_t read_ns, bytes_read;
} dpl_ahead_count;

/** Allocate the ring and start l->opt.readers threads at the loader's position; with 0 readers *out
 *  is NULL, which every function here takes. l->workers is set.
 *  @return DPL_OK, DPL_ENOMEM */
int dpl_ahead_open(dpl_ahead **out, const dpl_loader *l, dpl_text *why);

/** Wake everybody who waits here: reads no more, dpl_ahead_take() gives DPL_ECANCELED. */
void dpl_ahead_cancel(dpl_ahead *a);

/** Join and free. No worker runs any more. A read that does not come back is waited for. */
void dpl_ahead_close(dpl_ahead **a);

/** Forget what is read and go on from a batch, whose first sample gets number 0. Does not wait for
 *  reads under way. No worker is in dpl_ahead_take(). */
void dpl_ahead_restart(dpl_ahead *a, uint64_t epoch, uint64_t index);

/** Wait for sample `number`, and swap its bytes against the buffer *buf of *cap bytes.
 *  @return what reading it gave, with its text; DPL_ECANCELED */
int dpl_ahead_take(dpl_ahead *a, uint64_t number, void **buf, size_t *cap, size_t *len,
                   dpl_text *why);

void dpl_ahead_count_get(const dpl_ahead *a, dpl_ahead_count *out);

/** Bytes that the ring keeps at most, but for files larger than its share for one. */
uint64_t dpl_ahead_bytes(const dpl_ahead *a);

#ifdef __cplusplus
}
#endif
#endif
