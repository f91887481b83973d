/* SPDX-License-Identifier: Apache-2.0 */
/* What is saved is loaded, files of other models are refused by name, and PyTorch's are taken. */
#include "dpload.h"
#include "tests/checkpoint_net.h"
#include "trainer/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void what_is_saved_is_loaded(void **state)
{
    const char *folder = test_net_saved(41);
    test_net want, got;

    (void)state;
    test_net_init(&want);
    test_net_fill(&want, 41);
    test_net_init(&got);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(test_net_same(&got, &want));
    test_net_init(&got);
    assert_int_equal(
        dpt_checkpoint_load(&got.c, test_format("%s/model.safetensors", folder), 1, NULL), DPL_OK);
    assert_true(test_net_same(&got, &want));
    got.c.class_names = NULL; /* nothing to compare with */
    got.c.momentum = NULL;
    got.c.progress.step = 5;
    memset(got.params, 0, sizeof got.params);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 0, NULL), DPL_OK);
    assert_memory_equal(got.params, want.params, sizeof got.params);
    assert_int_equal(got.c.progress.step, 5);
}

static void old_states_go_and_others_stay(void **state)
{
    const char *folder = test_net_saved(1);
    test_net n, got;

    (void)state;
    test_net_init(&n);
    for (int k = 2; k < 5; k++) {
        test_net_fill(&n, k);
        test_net_save(&n, folder, "model.safetensors", 1);
    }
    test_net_save(&n, folder, "model.safetensors",
                  1); /* the same step again needs a name of its own */
    test_write_file(test_format("%s/optim-notes.txt", folder), "x", 1);
    test_write_file(test_format("%s/model.safetensors.tmp-12-0", folder), "x", 1);
    test_net_fill(&n, 9);
    test_net_save(&n, folder, "best.safetensors", 0);
    assert_int_equal(test_count_files(folder, "", NULL), 4);
    assert_int_equal(test_count_files(folder, "optim-0-4-1.safetensors", NULL), 1);
    assert_int_equal(test_count_files(folder, "optim-notes.txt", NULL), 1);
    test_net_fill(&n, 4);
    test_net_init(&got);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(test_net_same(&got, &n));
    test_net_refused(&got, test_format("%s/best.safetensors", folder), 1, DPL_EDATA,
                     "best.safetensors: holds weights only");
    assert_int_equal(
        dpt_checkpoint_load(&got.c, test_format("%s/best.safetensors", folder), 0, NULL), DPL_OK);
    assert_true(got.params[0] == 9);
}

static void peek_tells_arch_classes_and_size(void **state)
{
    const char *folder = test_net_saved(1);
    dpt_checkpoint_peek p;
    dpl_text why;

    (void)state;
    assert_int_equal(dpt_checkpoint_peek_open(&p, folder, &why), DPL_OK);
    assert_string_equal(p.arch, "smallnet");
    assert_int_equal(p.classes, 2);
    assert_string_equal(p.class_names[0], "ant");
    assert_string_equal(p.class_names[1], "b\xEF\xBF\xBD\"ee"); /* U+FFFD for what is not UTF-8 */
    assert_int_equal(p.height, 128);
    assert_int_equal(p.width, 96);
    dpt_checkpoint_peek_free(&p);
    assert_null(p.arch);
    assert_int_equal(dpt_checkpoint_peek_open(&p, test_net_state(folder), &why), DPL_OK);
    assert_true(!p.arch && p.classes == 0 && !p.class_names && p.height == 0);
    dpt_checkpoint_peek_free(&p);
    assert_int_equal(dpt_checkpoint_peek_open(&p, test_format("%s/no", folder), &why), DPL_EIO);
}

static void other_models_are_refused_by_name(void **state)
{
    static const char *const others[] = { "ant", "cat" };
    static const char *const three[] = { "ant", "bee", "cat" };
    const char *folder = test_net_saved(7);
    test_net n;

    (void)state;
    test_net_init(&n);
    n.graph.arch = (char *)"bignet";
    test_net_refused(&n, folder, 1, DPL_EDATA,
                     "model.safetensors: |checkpoint is a smallnet, this run is a bignet");
    test_net_init(&n);
    n.graph.classes = 3;
    n.c.class_names = three;
    test_net_refused(&n, folder, 0, DPL_EDATA,
                     "model.safetensors: checkpoint has 2 classes, the data has 3");
    test_net_init(&n);
    n.c.class_names = others;
    test_net_refused(&n, folder, 1, DPL_EDATA, "class 1 |of the data 'cat'");
    test_net_init(&n);
    n.param[0].shape[2] = 5;
    test_net_refused(&n, folder, 1, DPL_EDATA,
                     "'conv1.weight' has the shape [32, 3, 3, 3], smallnet needs [32, 3, 5, 3]");
    test_net_init(&n);
    n.param[0].name = (char *)"conv2.weight";
    test_net_refused(&n, folder, 1, DPL_EDATA, "'conv2.weight' of smallnet is missing");
    test_net_init(&n);
    n.graph.buffers = 0;
    test_net_refused(&n, folder, 0, DPL_EDATA, "which smallnet does not have");
    test_net_refused(&n, "/nonexistent/model.safetensors", 1, DPL_EIO, "No such file");
    test_net_refused(&n, test_net_state(folder), 0, DPL_EDATA,
                     "'conv1.weight' of smallnet is missing");
}

/* A file as PyTorch tools leave it: no metadata of ours, wrapped names, no num_batches_tracked. */
static void write_plain(const test_net *n, const char *path, const char *prefix, int classes)
{
    dpt_st_tensor t[8] = { 0 };
    size_t k = 0;
    size_t len;
    uint8_t *file;
    char *name, names[7][64];

    for (int i = 0; i < 7; i++, k++) {
        const dpt_param *p = i < 5 ? &n->param[i] : &n->buffer[i - 5];
        snprintf(names[i], sizeof names[i], "%s%s", prefix, p->name);
        t[k].name = names[i];
        t[k].dims = p->dims;
        for (int d = 0; d < p->dims; d++) t[k].shape[d] = p->shape[d];
        t[k].data = (i < 5 ? n->params : n->buffers) + p->offset;
        t[k].bytes = 4 * p->count;
        if (i == 3 || i == 4) {
            t[k].shape[0] = classes;
            t[k].bytes = t[k].bytes / CLASSES * (size_t)classes;
        }
    }
    assert_int_equal(dpt_st_write(path, t, k, NULL, 0, NULL, NULL), DPL_OK);
    file = test_read_file(path, &len); /* under other names our fields mean nothing */
    name = memmem(file, len, "\"crc32\"", 7);
    assert_non_null(name);
    memcpy(name, "\"other\"", 7);
    name = memmem(file, len, "\"written_by\"", 12);
    assert_non_null(name);
    memcpy(name, "\"other_name\"", 12);
    test_write_file(path, file, len);
    free(file);
}

static void plain_pytorch_files_load_as_weights(void **state)
{
    static const char *const prefixes[] = { "", "module.", "_orig_mod.module._orig_mod." };
    const char *path = test_format("%s/plain.safetensors", test_tempdir());
    dpt_checkpoint_peek p;
    test_net n, got;

    (void)state;
    test_net_init(&n);
    test_net_fill(&n, 5);
    for (size_t i = 0; i < 3; i++) {
        write_plain(&n, path, prefixes[i], CLASSES);
        test_net_init(&got);
        assert_int_equal(dpt_checkpoint_load(&got.c, path, 0, NULL), DPL_OK);
        assert_memory_equal(got.params, n.params, sizeof n.params);
        assert_memory_equal(got.buffers, n.buffers, sizeof n.buffers);
        assert_int_equal(got.c.batches_tracked, 0);
    }
    test_net_refused(&got, path, 1, DPL_EDATA, "'conv1.weight' of smallnet is missing");
    write_plain(&n, path, "", 1);
    test_net_refused(&got, path, 0, DPL_EDATA, "checkpoint has 1 classes, the data has 2");
    assert_int_equal(dpt_checkpoint_peek_open(&p, path, NULL), DPL_OK);
    assert_true(!p.arch && p.classes == 1 && !p.class_names);
    dpt_checkpoint_peek_free(&p);
    write_plain(&n, path, "", CLASSES);
    test_net_refused(&got, path, 1, DPL_EDATA, "holds weights only");
}

static void states_of_other_checkpoints_are_refused(void **state)
{
    const char *one = test_net_saved(3), *two = test_net_saved(3);
    const char *own = test_net_state(one);
    size_t len;
    uint8_t *file;
    test_net n;

    (void)state;
    test_net_init(&n);
    test_net_fill(&n, 4);
    n.c.progress.step = 3; /* another content under the same name */
    test_net_save(&n, two, "model.safetensors", 1);
    file = test_read_file(test_net_state(two), &len);
    test_write_file(own, file, len);
    free(file);
    test_net_refused(&n, one, 1, DPL_EDATA, "optim-0-3.safetensors: belongs to another checkpoint");
    assert_int_equal(unlink(own), 0);
    test_net_refused(&n, one, 1, DPL_EIO, "optim-0-3.safetensors is missing");
    assert_int_equal(dpt_checkpoint_load(&n.c, one, 0, NULL), DPL_OK);
}

static void same_state_gives_the_same_bytes(void **state)
{
    const char *one = test_net_saved(3), *two = test_net_saved(3);
    size_t len, len2;
    uint8_t *a = test_read_file(test_format("%s/model.safetensors", one), &len);
    uint8_t *b = test_read_file(test_format("%s/model.safetensors", two), &len2);

    (void)state;
    assert_int_equal(len, len2);
    assert_memory_equal(a, b, len);
    free(a);
    free(b);
}

/* Names, types and shapes of a saved ResNet-18 are those of torchvision's state_dict. */
static void resnet18_has_torchvisions_keys(void **state)
{
    static const char *const dtypes[] = { [DPT_ST_F32] = "F32", [DPT_ST_I64] = "I64" };
    const char *folder = test_tempdir();
    FILE *f = fopen("tests/data/safetensors_resnet18_keys.txt", "r");
    dpt_checkpoint c = { .class_names = test_animals, .height = 224, .width = 224 };
    dpt_graph *g;
    dpt_st_file *file;
    char name[128], dtype[8], shape[64];
    size_t n = 0;

    (void)state;
    assert_non_null(f);
    assert_int_equal(dpt_graph_build(&g, "resnet18", 2, 224, 224, NULL), DPL_OK);
    c.graph = g;
    c.params = calloc(g->param_floats, sizeof(float));
    c.buffers = calloc(g->buffer_floats, sizeof(float));
    assert_true(c.params && c.buffers);
    assert_int_equal(dpt_checkpoint_save(&c, folder, "model.safetensors", 0, NULL), DPL_OK);
    assert_int_equal(dpt_st_open(&file, test_format("%s/model.safetensors", folder), NULL), DPL_OK);
    for (; fscanf(f, "%127s %7s %63s", name, dtype, shape) == 3; n++) {
        const dpt_st_tensor *t = dpt_st_find(file, name);
        char got[64] = "-";

        if (!t) fail_msg("%s is missing", name);
        for (int d = 0, at = 0; d < t->dims; d++) {
            at += snprintf(got + at, sizeof got - (size_t)at, "%s%" PRId64, d ? "x" : "",
                           t->shape[d]);
        }
        assert_string_equal(got, shape);
        assert_string_equal(dtypes[t->dtype], dtype);
    }
    assert_int_equal(n, 122);
    assert_int_equal(dpt_st_count(file), n);
    dpt_st_close(&file);
    free(c.params);
    free(c.buffers);
    dpt_graph_destroy(&g);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(old_states_go_and_others_stay),
        cmocka_unit_test(peek_tells_arch_classes_and_size),
        cmocka_unit_test(other_models_are_refused_by_name),
        cmocka_unit_test(plain_pytorch_files_load_as_weights),
        cmocka_unit_test(states_of_other_checkpoints_are_refused),
        cmocka_unit_test(same_state_gives_the_same_bytes),
        cmocka_unit_test(resnet18_has_torchvisions_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
