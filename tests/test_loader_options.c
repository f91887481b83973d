/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, sizes of older and newer callers, and a clear refusal of every senseless value. */
#include "loader/options.h"
#include "tests/loaderutil.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static test_memory memory;

static int make_memory(void **state)
{
    (void)state;
    test_memory_gray(&memory, 20);
    return 0;
}

static int free_memory(void **state)
{
    (void)state;
    test_memory_free(&memory);
    return 0;
}

static void refused(const dpl_options *opt, int status, const char *text)
{
    dpl_loader *l = (dpl_loader *)(uintptr_t)8;

    assert_int_equal(dpl_open(&l, opt), status);
    assert_null(l);
    if (!strstr(dpl_error_text(NULL), text))
        fail_msg("\"%s\" does not say \"%s\"", dpl_error_text(NULL), text);
}

#define REFUSED(change, text)                                                                      \
    do {                                                                                           \
        dpl_options o = test_loader_options(&memory);                                              \
        change;                                                                                    \
        refused(&o, DPL_EINVAL, text);                                                             \
    } while (0)

static void senseless_values_are_refused(void **state)
{
    static const int weights[] = { 1, 0 }, uneven[] = { 100, 1 };
    static const char *const unnamed[] = { "a", NULL };

    (void)state;
    REFUSED(o.batch = 0, "batch 0: expected 1..1048576");
    REFUSED(o.batch = 1048577, "batch 1048577: expected 1..1048576");
    REFUSED(o.workers = -1, "workers -1: expected 0..1024");
    REFUSED(o.workers = 1025, "workers 1025: expected 0..1024");
    REFUSED(o.prefetch = 0, "prefetch 0: expected 1..64");
    REFUSED(o.prefetch = 65, "prefetch 65: expected 1..64");
    REFUSED(o.width = 0, "width 0: expected 1..8192");
    REFUSED(o.height = 8193, "height 8193: expected 1..8192");
    REFUSED(o.resize = -1, "resize -1");
    REFUSED(o.world = 0, "world 0");
    REFUSED(o.rank = 1, "rank 1: expected 0..0");
    REFUSED(o.rank = -1, "rank -1");
    REFUSED(o.shuffle = 2, "shuffle 2: expected 0..1");
    REFUSED(o.drop_last = -1, "drop_last -1");
    REFUSED(o.exif = 2, "exif 2");
    REFUSED(o.strict = 2, "strict 2");
    REFUSED(o.max_scans = 0, "max_scans 0");
    REFUSED(o.max_pixels = 0, "max_pixels 0");
    REFUSED(o.max_file_bytes = 0, "max_file_bytes 0");
    REFUSED(o.scale_min = 0, "scale 0..1: expected 0 < min <= max <= 1");
    REFUSED(o.scale_max = 1.5, "scale 0.08..1.5");
    REFUSED(o.scale_min = NAN, "scale nan");
    REFUSED(o.ratio_min = 2, "ratio 2..1.33333");
    REFUSED(o.ratio_max = INFINITY, "ratio 0.75..inf");
    REFUSED(o.hflip = 1.1, "hflip 1.1: expected 0..1");
    REFUSED(o.rotate = 181, "rotate 181: expected 0..180");
    REFUSED(o.rotate = NAN, "rotate nan");
    REFUSED(o.max_bad = 2, "max_bad 2: expected 0..1");
    REFUSED(o.std[1] = 0, "std[1] 0");
    REFUSED(o.mean[2] = NAN, "mean[2] nan");
    REFUSED(o.val_split = 0.95, "val_split 0.95: expected 0..0.9");
    REFUSED(o.subset = DPL_SUBSET_VAL, "val_split 0");
    REFUSED(o.subset = (dpl_subset)3, "subset 3");
    REFUSED(o.recipe = (dpl_recipe)2, "recipe 2");
    REFUSED(o.filter = DPL_NEAREST, "filter 2");
    REFUSED(o.rotate_filter = DPL_BICUBIC, "rotate_filter 1");
    REFUSED(o.decode = (dpl_decode_mode)5, "decode 5");
    REFUSED(o.dtype = (dpl_dtype)9, "dtype 9");
    REFUSED(o.layout = DPL_NCHW, "uint8 is NHWC only");
    REFUSED(o.epochs = UINT64_C(1) << 40, "epochs 1099511627776");
    REFUSED(o.source = NULL, "path: NULL");
    REFUSED(o.path = "x", "path and source");
    REFUSED((o.source = NULL, o.path = ""), "path: empty");
    REFUSED(o.n_classes = 2, "n_classes 2");
    REFUSED((o.classes = unnamed, o.n_classes = 2), "classes[1]");
    REFUSED(o.devices = "warp:9", "warp");
    REFUSED((o.split = weights, o.n_split = 2), "split has 2 weights: expected 1");
    REFUSED((o.devices = "cpu,cpu", o.split = weights, o.n_split = 2), "split[1] is 0");
    REFUSED((o.devices = "cpu,cpu", o.split = uneven, o.n_split = 2), "nothing for device 1");
    REFUSED((o.devices = "cpu,cpu", o.batch = 1), "batch 1 is smaller than the number of devices");
    REFUSED((o.devices = "cpu,cpu", o.batch = 5, o.world = 3), "3 processes x 2 parts");
}

static void struct_sizes_of_other_versions(void **state)
{
    dpl_options opt = test_loader_options(&memory), old;
    struct {
        dpl_options opt;
        int newer;
    } big;
    dpl_loader *l;
    dpl_info info;

    (void)state;
    opt.size = 0;
    refused(&opt, DPL_EINVAL, "size 0");
    dpl_options_init(&big.opt, sizeof big);
    assert_int_equal(big.newer, 0);
    refused(&big.opt, DPL_EINVAL, "a library at least as new");
    refused(NULL, DPL_EINVAL, "NULL");
    assert_int_equal(dpl_open(NULL, &opt), DPL_EINVAL);
    /* An older caller knows fewer fields: the rest are defaults, whatever lies behind. */
    old = test_loader_options(&memory);
    old.size = offsetof(dpl_options, workers);
    old.workers = -77;
    old.prefetch = -77;
    old.max_bad = -77;
    assert_int_equal(dpl_open(&l, &old), DPL_OK);
    dpl_info_get(l, &info);
    assert_int_equal(info.prefetch, 3);
    assert_true(info.workers >= 1);
    dpl_close(&l);
}

/* Values of dpload.h's [brackets]. */
static void defaults_are_as_documented(void **state)
{
    dpl_options o;

    (void)state;
    memset(&o, 0x5A, sizeof o);
    dpl_options_init(&o, sizeof o);
    assert_int_equal(o.size, sizeof o);
    assert_null(o.path);
    assert_int_equal(o.batch, 64);
    assert_int_equal(o.shuffle, 1);
    assert_int_equal(o.world, 1);
    assert_int_equal(o.width, 224);
    assert_int_equal(o.resize, 0);
    assert_true(o.scale_min == 0.08 && o.scale_max == 1);
    assert_true(o.ratio_min == 0.75 && o.ratio_max == 4.0 / 3);
    assert_true(o.hflip == 0.5 && o.rotate == 0);
    assert_int_equal(o.rotate_filter, DPL_NEAREST);
    assert_int_equal(o.exif, 1);
    assert_int_equal(o.dtype, DPL_UINT8);
    assert_true(o.mean[0] == 0.485F && o.std[2] == 0.225F);
    assert_int_equal(o.prefetch, 3);
    assert_true(o.max_bad == 0.001);
    assert_int_equal(o.max_pixels, 178956970);
    assert_int_equal(o.max_scans, 256);
    assert_int_equal(o.max_file_bytes, 536870912);
}

/* dpl_open() copies: the caller's memory may go right after it. */
static void pointers_are_copied(void **state)
{
    char *devices = strdup("cpu,cpu"), *name = strdup("first"), *other = strdup("rest");
    const char **classes = malloc(7 * sizeof *classes);
    int *split = malloc(2 * sizeof *split);
    dpl_source *source = malloc(sizeof *source);
    dpl_options opt = test_loader_options(&memory);
    dpl_loader *l;
    dpl_batch b;
    dpl_info info;

    (void)state;
    *source = memory.source;
    for (int c = 0; c < 7; c++) classes[c] = c ? other : name;
    split[0] = 3;
    split[1] = 1;
    opt.source = source;
    opt.classes = classes;
    opt.n_classes = 7;
    opt.devices = devices;
    opt.split = split;
    opt.n_split = 2;
    assert_int_equal(dpl_open(&l, &opt), DPL_OK);
    free(devices);
    free(name);
    free(other);
    free(classes);
    free(split);
    free(source);
    dpl_info_get(l, &info);
    assert_string_equal(info.class_names[0], "first");
    assert_string_equal(info.class_names[6], "rest");
    for (int k = 0; k < 6; k++) {
        const int err = dpl_next(l, &b, -1);

        if (err == DPL_EOF) continue;
        assert_int_equal(err, DPL_OK);
        if (b.n == 8) assert_int_equal(b.part[0].n, 6);
        dpl_release(l, &b, NULL);
    }
    dpl_close(&l);
}

static void evaluation_resizes_256_for_224(void **state)
{
    /* 448 x 448 with a black frame of 8 pixels: 256 of 448 keeps 4.6 of it, the crop cuts 16. */
    enum { FULL = 448, FRAME = 8 };
    const tool_jpeg_spec spec = { .quality = 95 };
    uint8_t *rgb = malloc(FULL * FULL * 3);
    test_memory m = memory;
    dpl_options opt;
    dpl_loader *l;
    dpl_batch b;

    (void)state;
    for (int y = 0; y < FULL; y++)
        for (int x = 0; x < FULL; x++)
            memset(rgb + 3 * (y * FULL + x),
                   x < FRAME || y < FRAME || x >= FULL - FRAME || y >= FULL - FRAME ? 0 : 200, 3);
    m.n = m.kinds = 1;
    assert_int_equal(tool_jpeg_write(&spec, rgb, FULL, FULL, &m.file[0], &m.len[0]), DPL_OK);
    m.source.user = &m;
    opt = test_loader_options(&m);
    opt.recipe = DPL_EVAL;
    opt.width = opt.height = 224;
    for (int narrow = 0; narrow < 2; narrow++) {
        int least = 255;

        opt.resize = narrow ? 224 : 0; /* 224: the frame is inside */
        assert_int_equal(dpl_open(&l, &opt), DPL_OK);
        assert_int_equal(dpl_next(l, &b, -1), DPL_OK);
        for (int k = 0; k < 224 * 224 * 3; k++) {
            const int v = ((uint8_t *)b.part[0].pixels)[k];

            if (v < least) least = v;
        }
        assert_true(narrow ? least < 20 : least > 180);
        dpl_close(&l);
    }
    free(m.file[0]);
    free(rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senseless_values_are_refused),
        cmocka_unit_test(struct_sizes_of_other_versions),
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(pointers_are_copied),
        cmocka_unit_test(evaluation_resizes_256_for_224),
    };

    return cmocka_run_group_tests(tests, make_memory, free_memory);
}
