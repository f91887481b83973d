/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from somewhere else than a class tree: three functions that the workers call. Here they are
 * the files named on the command line; it could be a database, an archive, memory.
 *
 *     cc 02_own_source.c -ldpload && ./a.out a.jpg b.png */
#include <dpload.h>
#include <stdio.h>

typedef struct list {
    char **path;
    uint64_t n;
} list;

static uint64_t list_count(void *user)
{
    return ((list *)user)->n;
}

/* Called from several threads at once, so it keeps nothing between calls. */
static int64_t list_read(void *user, uint64_t i, void *buf, size_t cap)
{
    FILE *f = fopen(((list *)user)->path[i], "rb");
    long len = -1;

    if (!f) return -1; /* a bad sample: named, counted, left out */
    if (!fseek(f, 0, SEEK_END)) len = ftell(f);
    rewind(f);
    /* When it does not fit, the length alone is the answer: the loader asks again with more room. */
    if (len >= 0 && (size_t)len <= cap && fread(buf, 1, (size_t)len, f) != (size_t)len) len = -1;
    fclose(f);
    return len;
}

static int32_t list_label(void *user, uint64_t i)
{
    (void)user;
    (void)i;
    return -1; /* unlabelled */
}

static const char *list_name(void *user, uint64_t i)
{
    return ((list *)user)->path[i];
}

int main(int argc, char **argv)
{
    list files = { argv + 1, (uint64_t)(argc - 1) };
    const dpl_source source = { &files, list_count, list_read, list_label, list_name };
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;
    dpl_bad bad;
    int err;

    if (argc < 2) {
        fprintf(stderr, "usage: %s PICTURE...\n", argv[0]);
        return 2;
    }
    dpl_options_init(&opt, sizeof opt);
    opt.source = &source;
    opt.recipe = DPL_EVAL;
    opt.shuffle = 0;
    opt.epochs = 1;
    opt.dtype = DPL_FLOAT32; /* normalised, ready for a network */
    opt.layout = DPL_NCHW;
    if (dpl_open(&l, &opt)) {
        fprintf(stderr, "%s\n", dpl_error_text(NULL));
        return 1;
    }
    while (!(err = dpl_next(l, &b, -1))) {
        const size_t plane = (size_t)b.width * (size_t)b.height;
        const float *pixels = b.part[0].pixels; /* [n][3][height][width] */

        for (int k = 0; k < b.n; k++, pixels += 3 * plane) {
            double sum = 0;

            for (size_t i = 0; i < 3 * plane; i++) sum += (double)pixels[i];
            printf("%s: mean %.4f\n", dpl_sample_name(l, b.part[0].ids[k]),
                   sum / (3 * (double)plane));
        }
        dpl_release(l, &b, NULL);
    }
    for (uint64_t i = 0; !dpl_bad_get(l, i, &bad); i++) printf("%s: %s\n", bad.path, bad.reason);
    if (err != DPL_EOF) fprintf(stderr, "%s\n", dpl_error_text(l));
    dpl_close(&l);
    return err == DPL_EOF ? 0 : 1;
}
