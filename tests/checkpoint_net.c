/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint_net.h. */
#include "tests/checkpoint_net.h"

#include "dpload.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

const char *const test_animals[2] = { "ant", "b\xff\"ee" };

void test_net_init(test_net *n)
{
    const test_net init = {
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
                             .second = n->second,
                             .buffers = n->buffers,
                             .class_names = test_animals,
                             .height = 128,
                             .width = 96,
                             .mean = { 0.485f, 0.456f, 0.406f },
                             .std = { 0.229f, 0.224f, 0.225f },
                             .recipe = "{\"lr\":0.1}" };
}

void test_net_fill(test_net *n, int k)
{
    for (int i = 0; i < PARAMS; i++) n->params[i] = (float)(k + i);
    for (int i = 0; i < PARAMS; i++) n->momentum[i] = (float)(k - i);
    for (int i = 0; i < PARAMS && n->c.rule == DPT_RULE_ADAMW; i++) n->second[i] = (float)(k * i);
    for (int i = 0; i < BUFFERS; i++) n->buffers[i] = (float)(2 * k + i);
    n->c.updates = k + 5;
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

int test_net_same(const test_net *a, const test_net *b)
{
    return !memcmp(a->params, b->params, sizeof a->params) &&
           !memcmp(a->momentum, b->momentum, sizeof a->momentum) &&
           !memcmp(a->second, b->second, sizeof a->second) &&
           !memcmp(a->buffers, b->buffers, sizeof a->buffers) && a->c.updates == b->c.updates &&
           a->c.batches_tracked == b->c.batches_tracked &&
           !memcmp(&a->c.progress, &b->c.progress, sizeof a->c.progress);
}

void test_net_save(const test_net *n, const char *folder, const char *name, int with_state)
{
    dpl_text why = { "" };

    if (dpt_checkpoint_save(&n->c, folder, name, with_state, &why)) fail_msg("%s", why.s);
}

const char *test_net_saved(int k)
{
    const char *folder = test_format("%s/run", test_tempdir());
    test_net n;

    test_make_folder(folder);
    test_net_init(&n);
    test_net_fill(&n, k);
    test_net_save(&n, folder, "model.safetensors", 1);
    return folder;
}

void test_net_refused(test_net *n, const char *path, int need_state, int err, const char *words)
{
    char list[256], *word, *rest = list;
    const test_net before = *n;
    dpl_text why = { "" };
    const int got = dpt_checkpoint_load(&n->c, path, need_state, &why);

    assert_true(strlen(words) < sizeof list);
    strcpy(list, words);
    if (got != err) fail_msg("%s: %d '%s', expected %d", path, got, why.s, err);
    while ((word = strsep(&rest, "|"))) {
        if (!strstr(why.s, word)) fail_msg("'%s' lacks '%s'", why.s, word);
    }
    assert_true(test_net_same(n, &before));
}

int test_count_files(const char *folder, const char *part, char *last)
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

const char *test_net_state(const char *folder)
{
    char name[256];

    assert_int_equal(test_count_files(folder, "optim-", name), 1);
    return test_format("%s/%s", folder, name);
}
