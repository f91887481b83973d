/* SPDX-License-Identifier: Apache-2.0 */
/* Stop a loader from another thread, whatever the thread that uses its batches is doing.
 *
 *     cc 05_cancel.c -ldpload && ./a.out imagenet/train 0.5 */
#include <dpload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct consumer {
    dpl_loader *loader;
    int status;       /* what ended it */
    uint64_t batches; /* it used */
} consumer;

/* Uses batches without end: dpl_next() waits without limit, and there is always a next epoch. */
static void *consume(void *arg)
{
    consumer *c = arg;
    dpl_batch b;

    do {
        c->status = dpl_next(c->loader, &b, -1);
        if (c->status == DPL_OK) {
            c->batches++;
            dpl_release(c->loader, &b, NULL);
        }
    } while (c->status == DPL_OK || c->status == DPL_EOF);
    return NULL;
}

static void sleep_for(double seconds)
{
    struct timespec t = { .tv_sec = (time_t)seconds };

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    consumer c = { NULL, DPL_OK, 0 };
    pthread_t thread;
    dpl_options opt;

    if (argc < 2) return fprintf(stderr, "usage: %s DIR [SECONDS]\n", argv[0]), 2;
    dpl_options_init(&opt, sizeof opt);
    opt.path = argv[1];
    opt.batch = 8;
    if (dpl_open(&c.loader, &opt)) return fprintf(stderr, "%s\n", dpl_error_text(NULL)), 1;
    if (pthread_create(&thread, NULL, consume, &c)) {
        dpl_close(&c.loader);
        return fputs("no thread could be started\n", stderr), 1;
    }
    sleep_for(argc > 2 ? atof(argv[2]) : 0.2);

    dpl_cancel(c.loader); /* safe while the other thread is inside dpl_next() */
    pthread_join(thread, NULL);
    printf("after %llu batches: %s\n", (unsigned long long)c.batches, dpl_status_text(c.status));
    dpl_close(&c.loader); /* only now: no other call may be running */
    return c.status != DPL_ECANCELED;
}
