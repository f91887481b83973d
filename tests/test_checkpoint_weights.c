/* SPDX-License-Identifier: Apache-2.0 */
/* The loader behind dptrain --weights: what PyTorch wrote arrives in its place, and what does not fit is
 * refused with the first tensor and their number, leaving everything as it was. */
#include "dpload.h"
#include "tests/checkpoint_net.h"
#include "trainer/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORCH "tests/data/weights_torch.safetensors" /* 5 classes; see make_weights_data.py */

static void refused(test_net *n, const char *path, const char *words)
{
    const test_net before = *n;
    dpt_checkpoint_notes notes;
    dpl_text why = { "" };
    const int err = dpt_checkpoint_weights(&n->c, path, &notes, &why);

    if (err != DPL_EDATA || !strstr(why.s, words))
        fail_msg("%d '%s', expected '%s'", err, why.s, words);
    assert_true(test_net_same(n, &before));
}

/* Tensor `k` of the script holds k, k + 1/8, … */
static void holds(const float *flat, const dpt_param *p, int k)
{
    for (size_t i = 0; i < p->count; i++)
        assert_true(flat[p->offset + i] == (float)k + (float)i / 8);
}

static void pytorchs_tensors_are_taken_but_for_the_last_layer(void **state)
{
    const char *w = TORCH;
    dpt_checkpoint_notes notes;
    test_net n, before;

    (void)state;
    test_net_init(&n);
    test_net_fill(&n, 100);
    before = n;
    assert_int_equal(dpt_checkpoint_weights(&n.c, w, &notes, NULL), DPL_OK);
    for (int i = 0; i < 3; i++) holds(n.params, &n.param[i], i);
    for (int i = 0; i < 2; i++) holds(n.buffers, &n.buffer[i], 3 + i);
    assert_memory_equal(n.params + n.param[3].offset, before.params + n.param[3].offset,
                        (HEAD + CLASSES) * sizeof(float));
    assert_int_equal(n.c.batches_tracked, 11);
    assert_string_equal(notes.head.s, TORCH " has 5 classes, the data has 2: the last layer "
                                            "(fc.weight, fc.bias) keeps its initial values");
    assert_string_equal(notes.input.s, "");
    memcpy(n.params, before.params, sizeof n.params);
    memcpy(n.buffers, before.buffers, sizeof n.buffers);
    n.c.batches_tracked = before.c.batches_tracked;
    assert_true(test_net_same(&n, &before)); /* the optimizer's state, the position */
}

/* The same with 5 classes of our own. */
static void an_equal_number_of_classes_takes_all(void **state)
{
    static const char *const five[] = { "a", "b", "c", "d", "e" };
    enum { MORE = 5 * FILTERS + 5 };
    float params[WEIGHTS + 2 * FILTERS + MORE] = { 0 };
    dpt_checkpoint_notes notes;
    test_net n;

    (void)state;
    test_net_init(&n);
    n.graph.classes = 5;
    n.param[3].shape[0] = n.param[4].shape[0] = n.param[4].count = 5;
    n.param[3].count = 5 * FILTERS;
    n.param[4].offset = n.param[3].offset + n.param[3].count;
    n.c.params = params;
    n.c.class_names = five;
    assert_int_equal(dpt_checkpoint_weights(&n.c, TORCH, &notes, NULL), DPL_OK);
    for (int i = 0; i < 5; i++) holds(params, &n.param[i], i < 3 ? i : i + 2);
    assert_string_equal(notes.head.s, "");
}

static void weights_of_a_run_tell_classes_and_input(void **state)
{
    static const char *const others[] = { "ant", "cat" };
    const char *file = test_format("%s/model.safetensors", test_net_saved(7));
    dpt_checkpoint_notes notes;
    test_net n, want;

    (void)state;
    test_net_init(&want);
    test_net_fill(&want, 7);
    test_net_init(&n);
    assert_int_equal(dpt_checkpoint_weights(&n.c, file, &notes, NULL), DPL_OK);
    assert_memory_equal(n.params, want.params, sizeof n.params);
    assert_memory_equal(n.buffers, want.buffers, sizeof n.buffers);
    assert_true(!n.c.updates && !n.c.progress.step && n.momentum[3] == 0);
    assert_true(!*notes.head.s && !*notes.input.s);
    n.c.class_names = others;
    n.c.width = 64;
    n.c.std[1] = 0.5f;
    assert_int_equal(dpt_checkpoint_weights(&n.c, file, &notes, NULL), DPL_OK);
    assert_non_null(strstr(notes.head.s, "class 1 of "));
    assert_non_null(strstr(notes.head.s, "of the data 'cat'"));
    assert_non_null(strstr(notes.input.s,
                           "were 96 x 128, mean [0.485,0.456,0.406], std [0.229,0.224,0.225]; here "
                           "they are 64 x 128, mean [0.485,0.456,0.406], std [0.229,0.5,0.225]"));
    n.graph.arch = (char *)"bignet";
    refused(&n, file, "holds the weights of a smallnet, this run trains a bignet: give --arch");
}

/* The file of PyTorch with `from` replaced by `to`, of the same length. */
static const char *changed(const char *from, const char *to)
{
    const char *path = test_format("%s/changed.safetensors", test_tempdir());
    const size_t n = strlen(from);
    size_t len;
    uint8_t *file = test_read_file(TORCH, &len), *at = memmem(file, len, from, n);

    assert_non_null(at);
    assert_int_equal(n, strlen(to));
    memcpy(at, to, n);
    test_write_file(path, file, len);
    free(file);
    return path;
}

static void what_does_not_fit_is_named_and_counted(void **state)
{
    test_net n;

    (void)state;
    test_net_init(&n);
    test_net_fill(&n, 3);
    refused(&n, changed("bn1.bias", "bn1.bald"),
            "tensor 'bn1.bias' of smallnet is missing, the first of 2 that do not fit; is --arch "
            "smallnet that of the file?");
    refused(&n, changed("fc.bias", "fc.bald"),
            "checkpoint has 5 classes, the data has 2, the first of 3");
    refused(&n, changed("[32,3,3,3]", "[32,9,3,1]"),
            "'conv1.weight' has the shape [32, 9, 3, 1], smallnet needs [32, 3, 3, 3]; is --arch");
    refused(&n, changed("bn1.num_batches_tracked", "bn1.num_patches_tracked"),
            "holds a tensor 'bn1.num_patches_tracked'");
    n.param[3].shape[1] = 16; /* the last layer differs in more than the number of classes */
    refused(&n, TORCH, "'fc.weight' has the shape [5, 32], smallnet needs [2, 16]");
}

static void counts_of_other_layers_are_passed_over(void **state)
{
    const char *path = changed("bn1.num_batches_tracked", "bn7.num_batches_tracked");
    dpt_checkpoint_notes notes;
    test_net n;

    (void)state;
    test_net_init(&n);
    n.c.batches_tracked = 5;
    assert_int_equal(dpt_checkpoint_weights(&n.c, path, &notes, NULL), DPL_OK);
    assert_int_equal(n.c.batches_tracked, 0);
}

static void other_types_are_refused(void **state)
{
    static const struct {
        dpt_st_dtype type;
        size_t bytes;
        const char *name;
    } cases[] = { { DPT_ST_F16, 2, "'x' is float16; convert" },
                  { DPT_ST_BF16, 2, "'x' is bfloat16" },
                  { DPT_ST_F64, 8, "'x' is float64" },
                  { DPT_ST_I32, 4, "'conv1.weight' of smallnet is missing" } };
    const char *path = test_format("%s/other.safetensors", test_tempdir());
    test_net n;

    (void)state;
    test_net_init(&n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double zero = 0;
        const dpt_st_tensor t = { "x", cases[i].type, 0, { 0 }, &zero, cases[i].bytes };

        assert_int_equal(dpt_st_write(path, &t, 1, NULL, 0, NULL, NULL), DPL_OK);
        refused(&n, path, cases[i].name);
    }
}

/* torchvision's ResNet-18, by names and shapes, where another was meant. */
static void the_network_that_the_file_is_of_is_named(void **state)
{
    const char *folder = test_tempdir();
    const char *path = test_format("%s/model.safetensors", folder);
    dpt_checkpoint c = { .height = 64, .width = 64 };
    dpt_checkpoint_notes notes;
    dpt_graph *g, *other;
    size_t len, meta;
    uint8_t *file, *at;
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_graph_build(&g, "resnet18", 7, 64, 64, NULL), DPL_OK);
    assert_int_equal(dpt_graph_build(&other, "resnet34", 3, 64, 64, NULL), DPL_OK);
    c.params = calloc(other->param_floats, sizeof(float));
    c.buffers = calloc(other->buffer_floats, sizeof(float));
    assert_true(c.params && c.buffers);
    c.graph = g;
    assert_int_equal(dpt_checkpoint_save(&c, folder, "model.safetensors", 0, NULL), DPL_OK);
    file = test_read_file(path, &len); /* under other names our fields mean nothing */
    meta = len < 4096 ? len : 4096;
    at = memmem(file, meta, "\"arch\"", 6);
    assert_non_null(at);
    memcpy(at, "\"othr\"", 6);
    at = memmem(file, meta, "\"crc32\"", 7);
    assert_non_null(at);
    memcpy(at, "\"other\"", 7);
    at = memmem(file, meta, "\"written_by\"", 12);
    assert_non_null(at);
    memcpy(at, "\"other_name\"", 12);
    test_write_file(path, file, len);
    free(file);
    c.graph = other;
    assert_int_equal(dpt_checkpoint_weights(&c, path, &notes, &why), DPL_EDATA);
    if (!strstr(why.s, "'layer1.2.conv1.weight' of resnet34 is missing, the first of 80 that do "
                       "not fit; its tensors are those of resnet18: give --arch resnet18"))
        fail_msg("%s", why.s);
    free(c.params);
    free(c.buffers);
    dpt_graph_destroy(&g);
    dpt_graph_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorchs_tensors_are_taken_but_for_the_last_layer),
        cmocka_unit_test(an_equal_number_of_classes_takes_all),
        cmocka_unit_test(weights_of_a_run_tell_classes_and_input),
        cmocka_unit_test(what_does_not_fit_is_named_and_counted),
        cmocka_unit_test(counts_of_other_layers_are_passed_over),
        cmocka_unit_test(other_types_are_refused),
        cmocka_unit_test(the_network_that_the_file_is_of_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
