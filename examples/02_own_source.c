/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from somewhere else than a class tree: three functions that the workers call. Here they are
 * the files named on the command line; it could be a database, an archive, memory.
 *     cc 02_own_source.c -ldpload && ./a.out a.jpg b.png */
#include <dpload.h>
#include <stdio.h>

static uint64_t list_count(void *user)
{
    uint64_t n = 0;

    while (((char **)user)[n]) n++;
    return n;
}

/* Called from several threads at once, so it keeps nothing between calls. */
static int64_t list_read(void *user, uint64_t i, void *buf, size_t cap)
{
    FILE *f = fopen(((char **)user)[i], "rb");
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
    return (void)user, (void)i, -1; /* unlabelled */
}

static const char *list_name(void *user, uint64_t i)
{
    return ((char **)user)[i];
}

int main(int argc, char **argv)
{
    const dpl_source source = { argv + 1, list_count, list_read, list_label, list_name };
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
    if (dpl_open(&l, &opt)) {
        fprintf(stderr, "%s\n", dpl_error_text(NULL));
        return 1;
    }
    while (!(err = dpl_next(l, &b, -1))) {
        const size_t len = 3 * (size_t)b.width * (size_t)b.height;
        const unsigned char *pixels = b.part[0].pixels; /* [n][height][width][3] */

        for (int k = 0; k < b.n; k++, pixels += len) {
            double sum = 0;

            for (size_t i = 0; i < len; i++) sum += pixels[i];
            printf("%s: mean %.1f\n", dpl_sample_name(l, b.part[0].ids[k]), sum / (double)len);
        }
        dpl_release(l, &b, NULL);
    }
    for (uint64_t i = 0; !dpl_bad_get(l, i, &bad); i++) printf("%s: %s\n", bad.path, bad.reason);
    if (err != DPL_EOF) fprintf(stderr, "%s\n", dpl_error_text(l));
    dpl_close(&l);
    return err == DPL_EOF ? 0 : 1;
}
