/* SPDX-License-Identifier: Apache-2.0 */
/* Stop in the middle of an epoch and go on exactly there, with another number of workers: the position
 * is four numbers. Ends with exit 0 when the resumed run delivers what the unbroken one does.
 *
 *     cc 03_resume.c -ldpload && ./a.out imagenet/train */
#include <dpload.h>
#include <inttypes.h>
#include <stdio.h>

static dpl_loader *open_or_complain(const char *dir, int workers)
{
    dpl_options opt;
    dpl_loader *l;

    dpl_options_init(&opt, sizeof opt);
    opt.path = dir;
    opt.batch = 16;
    opt.width = opt.height = 64;
    opt.workers = workers;
    opt.seed = 42;
    if (dpl_open(&l, &opt)) fprintf(stderr, "%s\n", dpl_error_text(NULL));
    return l;
}

/* A number that changes when any byte, label or id of the next batch does. 0: no batch came. */
static uint64_t next_hash(dpl_loader *l)
{
    uint64_t h = UINT64_C(14695981039346656037);
    dpl_batch b;

    while (dpl_next(l, &b, -1) == DPL_EOF) {} /* the next epoch follows by itself */
    if (!b.slot) return 0;
    for (int k = 0; k < b.n; k++) {
        const size_t bytes = (size_t)b.width * (size_t)b.height * 3;
        const unsigned char *p = (const unsigned char *)b.part[0].pixels + (size_t)k * bytes;

        for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * UINT64_C(1099511628211);
        h = (h ^ b.part[0].ids[k] ^ (uint64_t)b.part[0].labels[k]) * UINT64_C(1099511628211);
    }
    dpl_release(l, &b, NULL);
    return h;
}

int main(int argc, char **argv)
{
    dpl_loader *first, *second = NULL;
    dpl_state state;
    int same = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    if (!(first = open_or_complain(argv[1], 2))) return 1;
    for (int k = 0; k < 3; k++) next_hash(first);
    dpl_state_get(first, &state); /* save these with the model */
    printf("stopped in epoch %" PRIu64 " after %" PRIu64 " samples\n", state.epoch, state.sample);

    if ((second = open_or_complain(argv[1], 3)) && !dpl_state_set(second, &state)) {
        for (same = 0; same < 5; same++) {
            const uint64_t a = next_hash(first), b = next_hash(second);

            printf("%016" PRIx64 " unbroken, %016" PRIx64 " resumed\n", a, b);
            if (a != b || !a) break;
        }
    } else if (second) {
        fprintf(stderr, "%s\n", dpl_error_text(second));
    }
    dpl_close(&first);
    dpl_close(&second);
    return same == 5 ? 0 : 1;
}
