/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer's state of each update rule: what is saved is loaded, under PyTorch's names; another
 * rule's is refused; files that are older than the other rules load as SGD's. */
#include "dpload.h"
#include "tests/checkpoint_net.h"
#include "trainer/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *saved(dpt_rule rule, int k)
{
    const char *folder = test_format("%s/run", test_tempdir());
    test_net n;

    test_make_folder(folder);
    test_net_init(&n);
    n.c.rule = rule;
    test_net_fill(&n, k);
    test_net_save(&n, folder, "model.safetensors", 1);
    return folder;
}

static void each_rules_state_comes_back(void **state)
{
    (void)state;
    for (int rule = DPT_RULE_SGD; rule <= DPT_RULE_LARS; rule++) {
        const char *folder = saved((dpt_rule)rule, 41);
        test_net want, got;

        test_net_init(&want);
        want.c.rule = (dpt_rule)rule;
        test_net_fill(&want, 41);
        test_net_init(&got);
        got.c.rule = (dpt_rule)rule;
        assert_int_equal(dpt_checkpoint_load(&got.c, folder, 1, NULL), DPL_OK);
        assert_true(test_net_same(&got, &want));
        assert_int_equal(got.c.updates, 46);
    }
}

static void adamws_tensors_have_pytorchs_names(void **state)
{
    const char *path = test_net_state(saved(DPT_RULE_ADAMW, 3));
    dpt_st_file *f;
    const dpt_st_tensor *t;
    float first;

    (void)state;
    assert_int_equal(dpt_st_open(&f, path, NULL), DPL_OK);
    assert_int_equal(dpt_st_count(f), 10);
    assert_non_null(t = dpt_st_find(f, "exp_avg.fc.weight"));
    memcpy(&first, t->data, sizeof first);
    assert_true(first == (float)(3 - (WEIGHTS + 2 * FILTERS)));
    assert_non_null(t = dpt_st_find(f, "exp_avg_sq.fc.weight"));
    memcpy(&first, t->data, sizeof first);
    assert_true(first == (float)(3 * (WEIGHTS + 2 * FILTERS)));
    assert_string_equal(dpt_st_meta_get(f, "optimizer"), "AdamW");
    assert_string_equal(dpt_st_meta_get(f, "updates"), "8");
    dpt_st_close(&f);
}

static void the_state_of_another_rule_is_refused(void **state)
{
    static const char *const name[] = { "SGD", "AdamW", "LARS" };

    (void)state;
    for (int was = DPT_RULE_SGD; was <= DPT_RULE_LARS; was++) {
        const char *folder = saved((dpt_rule)was, 3);

        for (int is = DPT_RULE_SGD; is <= DPT_RULE_LARS; is++) {
            test_net n;

            test_net_init(&n);
            n.c.rule = (dpt_rule)is;
            if (was == is) continue;
            test_net_refused(&n, folder, 1, DPL_EDATA,
                             test_format("optim-0-3.safetensors: |trained with %s, |than %s;",
                                         name[was], name[is]));
            assert_int_equal(dpt_checkpoint_load(&n.c, folder, 0, NULL), DPL_OK); /* weights */
        }
    }
}

/* Write the checkpoint of a folder anew, with only this metadata in the state's file. */
static void rewrite_state(const char *folder, const dpt_st_meta *meta, size_t n_meta)
{
    static const char *const keys[] = { "arch",       "classes",    "height",     "width",
                                        "epoch",      "sample",     "step",       "evaluated",
                                        "train_loss", "train_n",    "train_top1", "train_top5",
                                        "best_top1",  "best_epoch", "seed",       "optim_file",
                                        "recipe" };
    enum { KEYS = sizeof keys / sizeof *keys };
    char *model = strdup(test_format("%s/model.safetensors", folder)), crc_text[9];
    char *path = strdup(test_net_state(folder));
    dpt_st_meta all[KEYS + 1];
    dpt_st_tensor t[16];
    dpt_st_file *f;
    uint32_t crc;

    assert_true(model && path);
    assert_int_equal(dpt_st_open(&f, path, NULL), DPL_OK);
    for (size_t i = 0; i < dpt_st_count(f); i++) t[i] = *dpt_st_at(f, i);
    assert_int_equal(dpt_st_write(path, t, dpt_st_count(f), meta, n_meta, &crc, NULL), DPL_OK);
    dpt_st_close(&f);
    assert_int_equal(dpt_st_open(&f, model, NULL), DPL_OK);
    for (size_t i = 0; i < dpt_st_count(f); i++) t[i] = *dpt_st_at(f, i);
    for (int i = 0; i < KEYS; i++) all[i] = (dpt_st_meta){ keys[i], dpt_st_meta_get(f, keys[i]) };
    snprintf(crc_text, sizeof crc_text, "%08x", crc);
    all[KEYS] = (dpt_st_meta){ "optim_crc32", crc_text };
    assert_int_equal(dpt_st_write(model, t, dpt_st_count(f), all, KEYS + 1, NULL, NULL), DPL_OK);
    dpt_st_close(&f);
    free(model);
    free(path);
}

static void files_without_a_rule_are_sgds(void **state)
{
    static const dpt_st_meta old = { "content", "momentum buffers of SGD" };
    const char *folder = saved(DPT_RULE_SGD, 7);
    test_net n, want;

    (void)state;
    rewrite_state(folder, &old, 1);
    test_net_init(&want);
    test_net_fill(&want, 7);
    want.c.updates = want.c.progress.step; /* what can be said of it */
    test_net_init(&n);
    assert_int_equal(dpt_checkpoint_load(&n.c, folder, 1, NULL), DPL_OK);
    assert_true(test_net_same(&n, &want));
    test_net_init(&n);
    n.c.rule = DPT_RULE_LARS;
    test_net_refused(&n, folder, 1, DPL_EDATA, "trained with SGD, ");
}

static void a_count_that_cannot_be_is_refused(void **state)
{
    static const char *const counts[] = { "-1", "many", NULL };
    test_net n;

    (void)state;
    for (int i = 0; i < 3; i++) {
        const dpt_st_meta meta[] = { { "optimizer", "AdamW" }, { "updates", counts[i] } };
        const char *folder = saved(DPT_RULE_ADAMW, 7);

        rewrite_state(folder, meta, counts[i] ? 2 : 1);
        test_net_init(&n);
        n.c.rule = DPT_RULE_ADAMW;
        test_net_refused(&n, folder, 1, DPL_EDATA, "no usable 'updates'");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rules_state_comes_back),
        cmocka_unit_test(adamws_tensors_have_pytorchs_names),
        cmocka_unit_test(the_state_of_another_rule_is_refused),
        cmocka_unit_test(files_without_a_rule_are_sgds),
        cmocka_unit_test(a_count_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
