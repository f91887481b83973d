/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest useful program: open a folder with one sub-folder per class, look at every batch of one
 * epoch, say what was bad.
 *
 *     cc 01_first_batch.c -ldpload && ./a.out imagenet/train */
#include <dpload.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    dpl_options opt;
    dpl_loader *l;
    dpl_info info;
    dpl_batch b;
    dpl_bad bad;
    int err;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    dpl_options_init(&opt, sizeof opt); /* random crop and flip to 224 x 224, batches of 64 */
    opt.path = argv[1];
    opt.epochs = 1;
    if (dpl_open(&l, &opt)) {
        fprintf(stderr, "%s\n", dpl_error_text(NULL));
        return 1;
    }
    dpl_info_get(l, &info);
    printf("%" PRIu64 " pictures, %d classes, %" PRIu64 " batches, %d workers\n", info.samples,
           info.classes, info.batches, info.workers);

    while (!(err = dpl_next(l, &b, -1))) {
        const unsigned char *pixels = b.part[0].pixels; /* [n][height][width][3], RGB */

        printf("batch %" PRIu64 ": %d pictures", b.index, b.n);
        if (b.n)
            printf(", the first is %s, class %s, its first pixel %d %d %d",
                   dpl_sample_name(l, b.part[0].ids[0]), info.class_names[b.part[0].labels[0]],
                   pixels[0], pixels[1], pixels[2]);
        printf("\n");
        dpl_release(l, &b, NULL); /* the memory goes back to the workers */
    }
    for (uint64_t i = 0; !dpl_bad_get(l, i, &bad); i++)
        printf("%s: %s: %s\n", bad.kind == DPL_BAD_REFUSED ? "refused" : "warned", bad.path,
               bad.reason);
    if (err != DPL_EOF) fprintf(stderr, "%s\n", dpl_error_text(l));
    dpl_close(&l);
    return err == DPL_EOF ? 0 : 1;
}
