/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a loader: what its parts share. Numbers that several threads touch without the lock
 * are accessed with __atomic built-ins and say so. */
#ifndef DPL_LOADER_LOADER_H
#define DPL_LOADER_LOADER_H

#include "augment/augment.h"
#include "base/text.h"
#include "device/device.h"
#include "dpload.h"
#include "kernels/kernels.h"
#include "loader/batch_mix.h"
#include "loader/decode.h"
#include "loader/idmap.h"
#include "loader/order.h"
#include "loader/readahead.h"
#include "loader/source.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- devices --- */

/** One part of every batch. Constant while open, but for what upload_lock guards. */
typedef struct dpl_lane {
    dpl_device *device;
    dpl_stream *copies;          /* upload_lock; NULL when the device reads host memory */
    pthread_mutex_t upload_lock; /* one thread at a time queues on a stream */
    int has_lock;                /* upload_lock is initialised */
    int capacity;                /* samples of the largest part */
} dpl_lane;

/* --- slots --- */

typedef enum dpl_slot_state {
    DPL_SLOT_FREE,    /* on the free list; its events may be pending */
    DPL_SLOT_FILLING, /* workers own the places that they claimed */
    DPL_SLOT_READY,   /* finished and queued for upload; waits for dpl_next() */
    DPL_SLOT_HELD     /* the caller's until dpl_release() */
} dpl_slot_state;

/** A sample that was refused or decoded with a warning while its batch was made. */
typedef struct dpl_issue {
    int place; /* in the batch: fixes the order, whatever worker met it */
    dpl_bad_kind kind;
    uint64_t id;
    const char *path; /* of the cache of names */
    char *reason;     /* malloc'd */
} dpl_issue;

/** One device's share of a slot. Written by the owners of its places; by the worker that completes it
 *  from then on; by the consumer while it is held. */
typedef struct dpl_slot_part {
    void *block; /* pinned: all of a sample but `bad` */
    uint8_t *pixels;
    uint64_t *ids;
    int32_t *labels, *labels2;
    float *mix;
    uint8_t *bad;                   /* [capacity] 1 = this place holds no picture */
    void *device_pixels;            /* NULL when the device reads host memory */
    dpl_event *uploaded, *released; /* recorded by the completing worker, by dpl_release() */
    int first, planned;             /* places first .. first + planned - 1 of the batch */
    int left;                       /* atomic: places not finished yet */
} dpl_slot_part;

typedef struct dpl_slot {
    dpl_slot_state state; /* lock */
    struct dpl_slot *next_free;
    uint64_t epoch, index;
    uint64_t first;        /* position of this rank's first sample */
    uint64_t planned;      /* samples over all ranks */
    uint64_t number;       /* of this rank's first place, counted since the last restart */
    int total;             /* samples of this rank */
    int places;            /* total, and one more where the halo is prepared */
    int left;              /* atomic: places not finished yet, counted when the batch is mixed */
    int parts_left;        /* lock */
    dpl_permutation order; /* of the epoch */
    dpl_mix_plan mix;
    dpl_slot_part *part; /* [lanes + 1]; the last one is the halo: the sample that this rank's last
                              one is mixed with. It is never handed out */
    dpl_part *view;      /* [lanes] as handed out */
    dpl_issue *issue;    /* lock */
    size_t issues, issue_cap;
} dpl_slot;

/* --- workers --- */

typedef enum dpl_wait_kind { DPL_WAIT_NONE, DPL_WAIT_STARVED, DPL_WAIT_BLOCKED } dpl_wait_kind;

/** Written by one worker (atomic, relaxed), read by anyone. */
typedef struct dpl_counters {
    uint64_t read_ns, decode_ns, augment_ns, upload_ns, starved_ns, blocked_ns, read_wait_ns;
    uint64_t prepared, bytes_read, pixels_decoded, bytes_out;
} dpl_counters;

/* A cache line of its own for each worker's counters. */
typedef struct __attribute__((aligned(64))) dpl_worker {
    dpl_counters count;
    dpl_loader *loader;
    pthread_t thread;
    int index, started;
    dpl_wait_kind wait; /* lock */
    int64_t wait_since; /* lock: dpl_now_ns() */
    int busy;           /* lock: counted in loader.busy */
    dpl_decoder *decoder;
    dpl_apply_scratch scratch;
    void *file; /* encoded bytes */
    size_t file_cap;
    uint8_t *picture; /* 8-bit picture before it is converted, or NULL */
} dpl_worker;

/* --- the loader --- */

/** Work of another kind for the workers, while nothing is claimed: run(w, arg, k) for every k. */
typedef struct dpl_task {
    void (*run)(dpl_worker *w, void *arg, uint64_t k); /* without the lock */
    void *arg;
    uint64_t next, count; /* the next k to take, and where they end */
} dpl_task;

struct dpl_loader {
    /* constant while open */
    dpl_options opt; /* its pointers are not used after open */
    pid_t pid;
    dpl_samples *samples;
    dpl_steps steps;
    dpl_recipe_spec recipe;
    dpl_decode_limits limits;
    dpl_kernels kernels;
    float scale[3], bias[3];
    size_t picture_bytes; /* one picture as delivered */
    dpl_lane *lane;       /* [lanes] */
    int *weight;          /* [lanes] or NULL */
    int lanes;
    char *devices, *devices_text; /* as dpl_info has them */
    const dpl_trace *trace;       /* of the first device that has one */
    dpl_slot *slot;               /* [slots] */
    int slots;
    uint64_t slot_bytes;
    dpl_worker *worker; /* [workers] */
    int workers;
    dpl_ahead *ahead; /* NULL: workers read themselves; has a lock of its own */
    uint64_t bad_cap;
    int64_t opened_ns;

    pthread_mutex_t lock; /* guards everything below, up to error */
    pthread_cond_t work;  /* workers wait: a free slot, an opened slot, resume, stop */
    pthread_cond_t ready; /* the consumer waits: the next batch */
    pthread_cond_t idle;  /* the consumer waits: no worker is busy */
    int has_sync;         /* lock and conditions are initialised */
    int stopping;         /* workers end */
    int canceled;
    int paused;  /* nothing is claimed */
    int opening; /* a worker prepares the slot of claim_seq */
    int busy;    /* workers between a claim and its end */
    int held;    /* slots with the caller */
    int ready_count;
    int failed; /* DPL_OK, or why no more is prepared; fail_text says more */
    int ended;  /* dpl_next() met the failure: what is ready is not given out */
    dpl_text fail_text;
    dpl_slot *free_slots, **free_tail; /* first released is first used */
    dpl_slot **in_flight;              /* [slots] of sequence s at s % slots */
    uint64_t base_epoch, base_index;   /* of sequence 0 */
    uint64_t claim_seq;                /* sequences below have a slot */
    uint64_t claim_number;             /* places in them */
    uint64_t claim_end;                /* sequences from here on are not begun */
    dpl_slot *filling;                 /* has places left to claim, or NULL */
    int next_place, next_part;
    uint64_t deliver_seq; /* the next to give out */
    int at_eof;           /* DPL_EOF is due before it */
    dpl_task task;        /* what workers do instead, see limit.c */
    uint64_t batches, images, late;
    int64_t wait_ns;
    dpl_bad *bad; /* in the order of delivery */
    size_t bads, bad_room;
    uint64_t refused, warned;
    dpl_idmap bad_seen; /* id * 2 + kind */

    pthread_mutex_t name_lock; /* guards names; taken alone */
    dpl_idmap names;           /* id to malloc'd path */

    dpl_text error; /* of the last call; the caller's calls do not overlap */
};

/* slots.c: allocation and the way to the devices */
int dpl_lanes_open(dpl_loader *l, const dpl_options *opt, dpl_text *why);
void dpl_lanes_close(dpl_loader *l);
/** What the device that failed said, for the end of a message. */
const char *dpl_lanes_failure(const dpl_loader *l);
int dpl_slots_create(dpl_loader *l, dpl_text *why);
void dpl_slots_destroy(dpl_loader *l);
/** Wait until nothing reads or writes the slot's memory any more. @return DPL_OK, DPL_EDEVICE */
int dpl_slot_settle(dpl_slot *s, int lanes);
/** Put a slot on the free list and wake the workers. Lock is held. */
void dpl_slot_recycle(dpl_loader *l, dpl_slot *s);
/** Squeeze bad places out of a complete part, keep the order, fill its view. */
void dpl_slot_compact(const dpl_loader *l, dpl_slot *s, int p);
/** Queue the copy of a complete part, when its device has memory. @return DPL_OK, DPL_EDEVICE … */
int dpl_slot_upload(dpl_loader *l, dpl_slot *s, int p);

/* mix.c: one worker mixes a whole batch, once all of its samples are there */
/** Draw how a batch is mixed.
 *  @return 1 when this rank needs a halo: the sample behind its last one, see dpl_batch_position() */
int dpl_mix_plan_batch(const dpl_loader *l, uint64_t epoch, uint64_t index, dpl_mix_plan *m);
/** Mix every sample that has a partner, in place. */
void dpl_mix_slot(const dpl_loader *l, dpl_slot *s);

/* limit.c measures the loader: include/dpload.h */

/* worker.c, prepare.c */
/** Threads that the options ask for. */
int dpl_workers_count(const dpl_options *opt);
/** Start l->workers threads. */
int dpl_workers_start(dpl_loader *l, dpl_text *why);
void dpl_workers_stop(dpl_loader *l); /* joins */
/** Read, decode and augment one place of a part. DPL_EDATA and DPL_EIO: a bad sample (why). */
int dpl_prepare(dpl_worker *w, dpl_slot *s, int p, int place, int *warned, dpl_text *why);
/** Decode what the sample's plan needs of it; the plan is drawn here. px is valid until the worker's
 *  decoder is used again. */
int dpl_prepare_decode(dpl_worker *w, const void *file, size_t len, uint64_t epoch, uint64_t id,
                       dpl_plan *plan, dpl_pixels *px, int *warned, dpl_text *why);
int dpl_prepare_init(dpl_worker *w, dpl_text *why);
void dpl_prepare_fini(dpl_worker *w);
/** Give scratch memory back that an unusually large picture needed. */
void dpl_prepare_trim(dpl_worker *w);
/** What dpl_prepare_trim() leaves at most. */
uint64_t dpl_prepare_scratch(const dpl_loader *l);
/** No further batch comes. Lock is held; the first failure stays. */
void dpl_loader_fail(dpl_loader *l, int status, const dpl_text *why);

/* deliver.c */
/** DPL_OK, or DPL_EFORK in a forked child. */
int dpl_loader_check_process(dpl_loader *l);
/** What keeps a call from moving the loader: another process, a cancel, a batch that is held.
 *  Lock is held. @return DPL_OK, or a status with l->error set */
int dpl_loader_check_idle(dpl_loader *l);
/** Stop claiming and wait for the samples in work. Lock is held; nothing is claimed until
 *  dpl_loader_restart(). */
void dpl_loader_pause(dpl_loader *l);
/** Pause, forget what is prepared, go on from (epoch, index). Lock is held; no slot is. */
void dpl_loader_restart(dpl_loader *l, uint64_t epoch, uint64_t index);

/* position.c: pure arithmetic of sequences */
/** Epoch and index of sequence seq. Lock is held. */
void dpl_position_of(const dpl_loader *l, uint64_t seq, uint64_t *epoch, uint64_t *index);
/** A position of a batch as it is; behind the last one comes the first one. */
uint64_t dpl_batch_position(const dpl_loader *l, uint64_t index, uint64_t pos);
/** The sample at a position of the epoch whose order is given. */
uint64_t dpl_sample_at(const dpl_loader *l, const dpl_permutation *order, uint64_t pos);
/** Does an epoch exist? */
int dpl_epoch_exists(const dpl_loader *l, uint64_t epoch);
/** Was the loader opened by another process? Takes no lock: in a forked child none may be taken. */
int dpl_loader_foreign(const dpl_loader *l);

/* finish.c */
size_t dpl_dtype_bytes(dpl_dtype t);
/** The finished 8-bit picture to out, as the options want it: any type but DPL_UINT8. */
void dpl_finish_convert(const dpl_loader *l, void *out, const uint8_t *picture);
/** Write what options.erase_mode says to a part of a delivered picture, that of sample id. */
void dpl_finish_erase(const dpl_loader *l, void *out, const dpl_rect *r, uint64_t epoch,
                      uint64_t id);

/* bad.c */
/** Remember an issue of a slot; reason is copied, path is dpl_sample_name()'s. Lock is held.
 *  @return DPL_OK, DPL_ENOMEM */
int dpl_issue_add(dpl_loader *l, dpl_slot *s, int place, dpl_bad_kind kind, uint64_t id,
                  const char *path, const char *reason);
void dpl_issues_clear(dpl_slot *s);
/** Enter a slot's issues into the list. Lock is held.
 *  @return DPL_OK; DPL_EDATA (past the cap: why), DPL_ENOMEM */
int dpl_issues_settle(dpl_loader *l, dpl_slot *s, dpl_text *why);
void dpl_bad_fini(dpl_loader *l);

#ifdef __cplusplus
}
#endif
#endif
