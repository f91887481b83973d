/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain --opt: what each rule is told to be, what is refused, and that a run which was ended and resumed
 * is, bit for bit, the run that was not. */
#include "tests/dptrain_runs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* 36 pictures in batches of 8: 5 steps an epoch. */
#define COMMON "-a tinynet --size 16 --backend ref -b 8 --seed 7 --progress none --epochs 3"
enum { MAX = 64, STEPS = 15 };

/* @return what it said, to be freed */
static char *train(const char *args)
{
    test_run r;
    char *err;

    test_dptrain(&r, COMMON " %s data", args);
    if (r.code) fail_msg("%s: exit %d: %s", args, r.code, r.err);
    err = r.err;
    r.err = NULL;
    test_run_free(&r);
    return err;
}

static void says(const char *args, const char *words)
{
    char *err = train(args);

    if (!strstr(err, words)) fail_msg("%s lacks \"%s\": %s", args, words, err);
    free(err);
}

static void refused(int code, const char *words, const char *args)
{
    test_run r;

    test_dptrain(&r, COMMON " %s data", args);
    if (r.code != code || !strstr(r.err, words))
        fail_msg("%s: exit %d, wanted %d and \"%s\": %s", args, r.code, code, words, r.err);
    test_run_free(&r);
}

static void same_file(const char *one, const char *two)
{
    size_t a, b;
    uint8_t *x = test_read_file(test_format("%s/%s", test_work(), one), &a);
    uint8_t *y = test_read_file(test_format("%s/%s", test_work(), two), &b);

    assert_int_equal(a, b);
    assert_memory_equal(x, y, a);
    free(x);
    free(y);
}

/* Losses, and the optimizer's whole file. */
static void same_run(const char *folder, const char *want)
{
    double got[MAX], all[MAX];
    char file[64];

    assert_int_equal(test_log_numbers(test_format("%s/log.jsonl", want), "train.loss", all, MAX),
                     STEPS);
    assert_int_equal(test_log_numbers(test_format("%s/log.jsonl", folder), "train.loss", got, MAX),
                     STEPS);
    assert_memory_equal(got, all, STEPS * sizeof *got);
    strcpy(file, test_format("%s/optim-3-15.safetensors", folder));
    same_file(file, test_format("%s/optim-3-15.safetensors", want));
}

static void each_rule_has_its_defaults(void **state)
{
    (void)state;
    says("--steps 1 -o sgd1", "SGD lr 0.1 (step), momentum 0.9, weight decay 0.0001, seed 7");
    says("--steps 1 -o adamw1 --opt adamw -v",
         "AdamW lr 0.001 (step), betas 0.9 and 0.999, eps 1e-08, weight decay 0.01, seed 7");
    says("--steps 1 -o lars1 --opt lars",
         "LARS lr 1 (step), momentum 0.9, trust coefficient 0.001, eps 1e-08, weight decay 0.0001");
    says("--steps 1 -o adamw2 --opt adamw --lr 0.1 --wd 1e-4 --opt-betas 0.8,0.9",
         "AdamW lr 0.1 (step), betas 0.8 and 0.9, eps 1e-08, weight decay 0.0001");
}

static void options_of_other_rules_are_refused(void **state)
{
    (void)state;
    refused(2, "--momentum with --opt adamw: it is an option of sgd and lars; leave it out",
            "--opt adamw --momentum 0.9");
    refused(2, "--nesterov with --opt adamw", "--opt adamw --nesterov");
    refused(2, "--nesterov with --opt lars", "--opt lars --nesterov");
    refused(2, "--opt-betas with --opt sgd", "--opt-betas 0.9,0.99");
    refused(2, "--opt-betas with --opt lars", "--opt lars --opt-betas 0.9,0.99");
    refused(2, "--opt-eps with --opt sgd", "--opt-eps 1e-6");
    refused(2, "--trust-coeff with --opt adamw", "--opt adamw --trust-coeff 0.02");
    refused(2, "--opt-betas 0.9,1", "--opt adamw --opt-betas 0.9,1");
    refused(2, "adam", "--opt adam");
}

static void a_killed_run_with_adamw_goes_on(void **state)
{
    test_run r;

    (void)state;
    free(train("--opt adamw -j 2 -o whole"));
    test_dptrain_signal(&r, SIGKILL, "killed/log.jsonl", 8,
                        COMMON " --opt adamw --save-freq 3 -j 2 -o killed data");
    assert_int_equal(r.code, 1000 + SIGKILL);
    test_run_free(&r);
    free(train("--resume killed -j 1"));
    same_run("killed", "whole");
}

static void a_run_with_lars_goes_on(void **state)
{
    (void)state;
    free(train("--opt lars --lr 4 -j 2 -o lars"));
    free(train("--opt lars --lr 4 --steps 7 -o lars7"));
    free(train("--resume lars7"));
    same_run("lars7", "lars");
}

/* The rule of the run counts, wherever it was said. */
static void a_resumed_run_keeps_its_rule(void **state)
{
    (void)state;
    free(train("--opt adamw --steps 2 -o kept"));
    refused(3, "trained with AdamW, which has another state than SGD", "--resume kept --opt sgd");
    refused(2, "--momentum with --opt adamw", "--resume kept --momentum 0.8");
    says("--resume kept --opt-betas 0.8,0.9 --steps 3",
         "resume: --opt-betas was 0.9,0.999, is 0.8,0.9 from here on");
    says("--resume kept --steps 4", "AdamW lr 0.001 (step), betas");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_has_its_defaults),
        cmocka_unit_test(options_of_other_rules_are_refused),
        cmocka_unit_test(a_killed_run_with_adamw_goes_on),
        cmocka_unit_test(a_run_with_lars_goes_on),
        cmocka_unit_test(a_resumed_run_keeps_its_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
