/* SPDX-License-Identifier: Apache-2.0 */
/* Saving and loading a run: nothing is lost by a kill, a full disk or a damaged file. */
#include "trainer/checkpoint.h"

#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A net of one convolution, one batch norm and a classifier. */
enum { FILTERS = 32, CLASSES = 2, WEIGHTS = FILTERS * 27, HEAD = CLASSES * FILTERS };
enum { PARAMS = WEIGHTS + 2 * FILTERS + HEAD + CLASSES, BUFFERS = 2 * FILTERS };

typedef struct net {
    dpt_param param[5], buffer[2];
    dpt_node node[5];
    dpt_graph graph;
    float params[PARAMS], momentum[PARAMS], buffers[BUFFERS];
    dpt_checkpoint c;
} net;

static const char *const animals[] = { "ant", "b\xff\"ee" }; /* folder names need not be UTF-8 */

static void net_init(net *n)
{
    const net init = {
        .param = { { .name = (char *)"conv1.weight",
                     .dims = 4,
                     .shape = { FILTERS, 3, 3, 3 },
                     .count = WEIGHTS },
                   { .name = (char *)"bn1.weight",
                     .dims = 1,
                     .shape = { FILTERS },
                     .offset = WEIGHTS,
                     .count = FILTERS },
                   { .name = (char *)"bn1.bias",
                     .dims = 1,
                     .shape = { FILTERS },
                     .offset = WEIGHTS + FILTERS,
                     .count = FILTERS },
                   { .name = (char *)"fc.weight",
                     .dims = 2,
                     .shape = { CLASSES, FILTERS },
                     .offset = WEIGHTS + 2 * FILTERS,
                     .count = HEAD },
                   { .name = (char *)"fc.bias",
                     .dims = 1,
                     .shape = { CLASSES },
                     .offset = WEIGHTS + 2 * FILTERS + HEAD,
                     .count = CLASSES } },
        .buffer = { { .name = (char *)"bn1.running_mean",
                      .dims = 1,
                      .shape = { FILTERS },
                      .count = FILTERS },
                    { .name = (char *)"bn1.running_var",
                      .dims = 1,
                      .shape = { FILTERS },
                      .offset = FILTERS,
                      .count = FILTERS } },
        .node = { { .op = DPT_CONV },
                  { .op = DPT_BN, .param = 1 },
                  { .op = DPT_RELU },
                  { .op = DPT_AVGPOOL },
                  { .op = DPT_LINEAR, .param = 3 } },
    };

    *n = init;
    n->graph = (dpt_graph){ .arch = (char *)"smallnet",
                            .classes = CLASSES,
                            .node = n->node,
                            .nodes = 5,
                            .param = n->param,
                            .params = 5,
                            .param_floats = PARAMS,
                            .buffer = n->buffer,
                            .buffers = 2,
                            .buffer_floats = BUFFERS };
    n->c = (dpt_checkpoint){ .graph = &n->graph,
                             .params = n->params,
                             .momentum = n->momentum,
                             .buffers = n->buffers,
                             .class_names = animals,
                             .height = 128,
                             .width = 96,
                             .mean = { 0.485f, 0.456f, 0.406f },
                             .std = { 0.229f, 0.224f, 0.225f },
                             .recipe = "{\"lr\":0.1}" };
}

/* Fill with numbers that tell which save they belong to. */
static void net_fill(net *n, int k)
{
    for (int i = 0; i < PARAMS; i++) n->params[i] = (float)(k + i);
    for (int i = 0; i < PARAMS; i++) n->momentum[i] = (float)(k - i);
    for (int i = 0; i < BUFFERS; i++) n->buffers[i] = (float)(2 * k + i);
    n->c.batches_tracked = 3 * k;
    n->c.progress = (dpt_progress){ .epoch = k / 10,
                                    .sample = UINT64_MAX - (uint64_t)k,
                                    .step = k,
                                    .evaluated = k % 2,
                                    .train_loss = k / 3.0,
                                    .train_n = 64,
                                    .train_top1 = k,
                                    .train_top5 = 60,
                                    .best_top1 = 100.0 / 7,
                                    .best_epoch = -1,
                                    .seed = 1ull << 63 };
}

static int same_net(const net *a, const net *b)
{
    return !memcmp(a->params, b->params, sizeof a->params) &&
           !memcmp(a->momentum, b->momentum, sizeof a->momentum) &&
           !memcmp(a->buffers, b->buffers, sizeof a->buffers) &&
           a->c.batches_tracked == b->c.batches_tracked &&
           !memcmp(&a->c.progress, &b->c.progress, sizeof a->c.progress);
}

static void save(const net *n, const char *folder, const char *name, int with_state)
{
    dpl_text why = { "" };

    if (dpt_checkpoint_save(&n->c, folder, name, with_state, &why)) fail_msg("%s", why.s);
}

static const char *saved(int k) /* a new folder with save k in it */
{
    const char *folder = test_format("%s/run", test_tempdir());
    net n;

    test_make_folder(folder);
    net_init(&n);
    net_fill(&n, k);
    save(&n, folder, "model.safetensors", 1);
    return folder;
}

/* Load fails with err and a text that has all of the words; n stays as it is. */
static void expect_refused(net *n, const char *path, int need_state, int err, const char *words)
{
    char list[256], *word, *rest = list;
    const net before = *n;
    dpl_text why = { "" };
    const int got = dpt_checkpoint_load(&n->c, path, need_state, &why);

    assert_true(strlen(words) < sizeof list);
    strcpy(list, words);
    if (got != err) fail_msg("%s: %d '%s', expected %d", path, got, why.s, err);
    while ((word = strsep(&rest, "|"))) {
        if (!strstr(why.s, word)) fail_msg("'%s' lacks '%s'", why.s, word);
    }
    assert_true(same_net(n, &before));
}

/* Names in a folder that contain `part`; the last one goes to last (may be NULL). */
static int count_files(const char *folder, const char *part, char *last)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.' || !strstr(e->d_name, part)) continue;
        if (last) strcpy(last, e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

static const char *state_of(const char *folder)
{
    char name[256];

    assert_int_equal(count_files(folder, "optim-", name), 1);
    return test_format("%s/%s", folder, name);
}

static void what_is_saved_is_loaded(void **state)
{
    const char *folder = saved(41);
    net want, got;

    (void)state;
    net_init(&want);
    net_fill(&want, 41);
    net_init(&got);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(same_net(&got, &want));
    net_init(&got);
    assert_int_equal(
        dpt_checkpoint_load(&got.c, test_format("%s/model.safetensors", folder), 1, NULL), DPL_OK);
    assert_true(same_net(&got, &want));
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
    const char *folder = saved(1);
    net n, got;

    (void)state;
    net_init(&n);
    for (int k = 2; k < 5; k++) {
        net_fill(&n, k);
        save(&n, folder, "model.safetensors", 1);
    }
    save(&n, folder, "model.safetensors", 1); /* the same step again needs a name of its own */
    test_write_file(test_format("%s/optim-notes.txt", folder), "x", 1);
    test_write_file(test_format("%s/model.safetensors.tmp-12-0", folder), "x", 1);
    net_fill(&n, 9);
    save(&n, folder, "best.safetensors", 0);
    assert_int_equal(count_files(folder, "", NULL), 4);
    assert_int_equal(count_files(folder, "optim-0-4-1.safetensors", NULL), 1);
    assert_int_equal(count_files(folder, "optim-notes.txt", NULL), 1);
    net_fill(&n, 4);
    net_init(&got);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(same_net(&got, &n));
    expect_refused(&got, test_format("%s/best.safetensors", folder), 1, DPL_EDATA,
                   "best.safetensors: holds weights only");
    assert_int_equal(
        dpt_checkpoint_load(&got.c, test_format("%s/best.safetensors", folder), 0, NULL), DPL_OK);
    assert_true(got.params[0] == 9);
}

static void peek_tells_arch_classes_and_size(void **state)
{
    const char *folder = saved(1);
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
    assert_int_equal(dpt_checkpoint_peek_open(&p, state_of(folder), &why), DPL_OK);
    assert_true(!p.arch && p.classes == 0 && !p.class_names && p.height == 0);
    dpt_checkpoint_peek_free(&p);
    assert_int_equal(dpt_checkpoint_peek_open(&p, test_format("%s/no", folder), &why), DPL_EIO);
}

static void other_models_are_refused_by_name(void **state)
{
    static const char *const others[] = { "ant", "cat" };
    static const char *const three[] = { "ant", "bee", "cat" };
    const char *folder = saved(7);
    net n;

    (void)state;
    net_init(&n);
    n.graph.arch = (char *)"bignet";
    expect_refused(&n, folder, 1, DPL_EDATA,
                   "model.safetensors: |checkpoint is a smallnet, this run is a bignet");
    net_init(&n);
    n.graph.classes = 3;
    n.c.class_names = three;
    expect_refused(&n, folder, 0, DPL_EDATA,
                   "model.safetensors: checkpoint has 2 classes, the data has 3");
    net_init(&n);
    n.c.class_names = others;
    expect_refused(&n, folder, 1, DPL_EDATA, "class 1 |of the data 'cat'");
    net_init(&n);
    n.param[0].shape[2] = 5;
    expect_refused(&n, folder, 1, DPL_EDATA,
                   "'conv1.weight' has the shape [32, 3, 3, 3], smallnet needs [32, 3, 5, 3]");
    net_init(&n);
    n.param[0].name = (char *)"conv2.weight";
    expect_refused(&n, folder, 1, DPL_EDATA, "'conv2.weight' of smallnet is missing");
    net_init(&n);
    n.graph.buffers = 0;
    expect_refused(&n, folder, 0, DPL_EDATA, "which smallnet does not have");
    expect_refused(&n, "/nonexistent/model.safetensors", 1, DPL_EIO, "No such file");
    expect_refused(&n, state_of(folder), 0, DPL_EDATA, "'conv1.weight' of smallnet is missing");
}

/* A file as PyTorch tools leave it: no metadata of ours, wrapped names, no num_batches_tracked. */
static void write_plain(const net *n, const char *path, const char *prefix, int classes)
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
    net n, got;

    (void)state;
    net_init(&n);
    net_fill(&n, 5);
    for (size_t i = 0; i < 3; i++) {
        write_plain(&n, path, prefixes[i], CLASSES);
        net_init(&got);
        assert_int_equal(dpt_checkpoint_load(&got.c, path, 0, NULL), DPL_OK);
        assert_memory_equal(got.params, n.params, sizeof n.params);
        assert_memory_equal(got.buffers, n.buffers, sizeof n.buffers);
        assert_int_equal(got.c.batches_tracked, 0);
    }
    expect_refused(&got, path, 1, DPL_EDATA, "'conv1.weight' of smallnet is missing");
    write_plain(&n, path, "", 1);
    expect_refused(&got, path, 0, DPL_EDATA, "checkpoint has 1 classes, the data has 2");
    assert_int_equal(dpt_checkpoint_peek_open(&p, path, NULL), DPL_OK);
    assert_true(!p.arch && p.classes == 1 && !p.class_names);
    dpt_checkpoint_peek_free(&p);
    write_plain(&n, path, "", CLASSES);
    expect_refused(&got, path, 1, DPL_EDATA, "holds weights only");
}

static void states_of_other_checkpoints_are_refused(void **state)
{
    const char *one = saved(3), *two = saved(3);
    const char *own = state_of(one);
    size_t len;
    uint8_t *file;
    net n;

    (void)state;
    net_init(&n);
    net_fill(&n, 4);
    n.c.progress.step = 3; /* another content under the same name */
    save(&n, two, "model.safetensors", 1);
    file = test_read_file(state_of(two), &len);
    test_write_file(own, file, len);
    free(file);
    expect_refused(&n, one, 1, DPL_EDATA, "optim-0-3.safetensors: belongs to another checkpoint");
    assert_int_equal(unlink(own), 0);
    expect_refused(&n, one, 1, DPL_EIO, "optim-0-3.safetensors is missing");
    assert_int_equal(dpt_checkpoint_load(&n.c, one, 0, NULL), DPL_OK);
}

static void truncated_files_are_refused(void **state)
{
    static const size_t percent[] = { 0, 1, 50, 99 };
    const char *folder = saved(3);
    const char *paths[] = { test_format("%s/model.safetensors", folder), state_of(folder) };
    net n;

    (void)state;
    net_init(&n);
    for (size_t p = 0; p < 2; p++) {
        size_t len;
        uint8_t *file = test_read_file(paths[p], &len);
        for (size_t i = 0; i < 4; i++) {
            test_write_file(paths[p], file, len * percent[i] / 100);
            expect_refused(&n, folder, 1, DPL_EDATA, paths[p]);
        }
        test_write_file(paths[p], file, len);
        free(file);
    }
    assert_int_equal(dpt_checkpoint_load(&n.c, folder, 1, NULL), DPL_OK);
}

static void flipped_bytes_are_refused(void **state)
{
    const char *folder = saved(3);
    const char *paths[] = { test_format("%s/model.safetensors", folder), state_of(folder) };
    uint32_t x = 1;
    net n;

    (void)state;
    net_init(&n);
    for (int i = 0; i < 100; i++) {
        const char *path = paths[i % 2];
        size_t len, at;
        uint8_t *file = test_read_file(path, &len), old;

        x = x * 1664525 + 1013904223;
        at = (size_t)(x >> 8) % len;
        old = file[at];
        file[at] ^= (uint8_t)(1 + x % 255);
        test_write_file(path, file, len);
        expect_refused(&n, folder, 1, DPL_EDATA, path);
        file[at] = old;
        test_write_file(path, file, len);
        free(file);
    }
    assert_int_equal(dpt_checkpoint_load(&n.c, folder, 1, NULL), DPL_OK);
}

static void save_until_killed(net *n, int k, const char *folder)
{
    for (;; k++) {
        net_fill(n, k);
        if (dpt_checkpoint_save(&n->c, folder, "model.safetensors", 1, NULL)) _exit(1);
    }
}

static void kills_while_saving_lose_nothing(void **state)
{
    const char *folder = saved(1);
    int last = 1, moved = 0;
    uint32_t x = (uint32_t)time(NULL);
    net n, got;

    (void)state;
    net_init(&n);
    for (int kill_no = 0; kill_no < 20; kill_no++) {
        const pid_t child = fork();
        struct timespec pause = { 0, 0 };
        dpl_text why = { "" };
        int status;

        assert_true(child >= 0);
        if (!child) save_until_killed(&n, last + 1, folder);
        x = x * 1664525 + 1013904223;
        pause.tv_nsec = 1000000 + (long)(x >> 8) % 30000000;
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it did not fail on its own */
        net_init(&got);
        if (dpt_checkpoint_load(&got.c, folder, 1, &why)) fail_msg("kill %d: %s", kill_no, why.s);
        assert_true(got.c.progress.step >= last);
        moved += got.c.progress.step > last;
        last = (int)got.c.progress.step;
        net_fill(&n, last);
        assert_true(same_net(&got, &n)); /* weights, state and position of one save */
    }
    assert_true(moved > 0);
    net_fill(&n, last + 1);
    save(&n, folder, "model.safetensors", 1);
    assert_int_equal(count_files(folder, "", NULL), 2); /* nothing is left of the killed ones */
}

/* A file that may not grow further fails as on a full disk, and so shows the same path. */
static void full_disk_keeps_the_old_checkpoint(void **state)
{
    const char *folder = saved(3);
    char recipe[40000];
    const rlim_t limits[] = { 4000, 20000 }; /* too small for the state; for the model only */
    struct rlimit old, less;
    net n, got;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    memset(recipe, 'r', sizeof recipe - 1);
    recipe[sizeof recipe - 1] = 0;
    net_init(&n);
    net_fill(&n, 4);
    n.c.recipe = recipe;
    for (size_t i = 0; i < 2; i++) {
        dpl_text why = { "" };
        int err;

        less = old;
        less.rlim_cur = limits[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        err = dpt_checkpoint_save(&n.c, folder, "model.safetensors", 1, &why);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(err, DPL_EIO);
        assert_non_null(strstr(why.s, i ? "model.safetensors: " : "optim-0-4.safetensors: "));
        assert_non_null(strstr(why.s, strerror(EFBIG)));
        assert_non_null(strstr(why.s, " bytes are needed, "));
        assert_int_equal(count_files(folder, "", NULL), 2);
        net_init(&got);
        assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
        assert_int_equal(got.c.progress.step, 3);
    }
    save(&n, folder, "model.safetensors", 1);
    assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
    assert_true(same_net(&got, &n));
}

static void same_state_gives_the_same_bytes(void **state)
{
    const char *one = saved(3), *two = saved(3);
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
    dpt_checkpoint c = { .class_names = animals, .height = 224, .width = 224 };
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
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(flipped_bytes_are_refused),
        cmocka_unit_test(kills_while_saving_lose_nothing),
        cmocka_unit_test(full_disk_keeps_the_old_checkpoint),
        cmocka_unit_test(same_state_gives_the_same_bytes),
        cmocka_unit_test(resnet18_has_torchvisions_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
