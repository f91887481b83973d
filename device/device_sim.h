/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the modelled accelerator: its device, and the points that its events mark. */
#ifndef DPL_DEVICE_DEVICE_SIM_H
#define DPL_DEVICE_DEVICE_SIM_H

#include "device/device_ops.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place that streams pass, again and again: pass number n is over once n of them are. */
typedef struct dpl_sim_point dpl_sim_point;

/* The fields are the callers': record, wait and query of one event need an order of their own when
 * they come from several threads, as with any device. */
typedef struct dpl_sim_event {
    dpl_event base;
    dpl_sim_point *point; /* NULL = never recorded */
    uint32_t pass;        /* which pass of it */
} dpl_sim_event;

/** Make e stand for a new pass and return its point, or NULL without memory. Never blocks on work. */
dpl_sim_point *dpl_sim_event_arm(dpl_sim_event *e);
void dpl_sim_event_disarm(dpl_sim_event *e); /* hand the point back to the device */

/** Pass p: what the caller did before is visible to whoever waits for it. */
void dpl_sim_point_pass(dpl_sim_point *p, uint32_t pass, int64_t now_ns);
/** 1 and an ordering edge when that pass is over, else 0. */
int dpl_sim_point_passed(dpl_sim_point *p, uint32_t pass);
/** Block until that pass is over. @return the modelled time of the last pass, ns */
int64_t dpl_sim_point_wait(dpl_sim_point *p, uint32_t pass);

/** Reserve one way of the bus, which all streams of d share, from from_ns on. No ordering of data.
 *  @return when the copy ends, ns */
int64_t dpl_sim_bus_take(dpl_device *d, dpl_copy_way way, int64_t from_ns, size_t bytes);

int dpl_sim_stream_create(dpl_device *d, dpl_stream **out, const char *name, dpl_text *why);
void dpl_sim_stream_destroy(dpl_stream *s);
int dpl_sim_copy(dpl_stream *s, void *dst, const void *src, size_t bytes, dpl_copy_way way);
int dpl_sim_launch(dpl_stream *s, void (*run)(void *arg), void *arg, long long modelled_ns);
int dpl_sim_event_record(dpl_event *e, dpl_stream *s);
int dpl_sim_stream_wait(dpl_stream *s, dpl_event *e);
int dpl_sim_stream_sync(dpl_stream *s);

#ifdef __cplusplus
}
#endif
#endif
