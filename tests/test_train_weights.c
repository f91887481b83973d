/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain --weights: the run begins with the weights of the file and with nothing else of it, a resumed
 * run goes on without the file, and what cannot be meant is refused in one line. */
#include "tests/run_inside.h"
#include "trainer/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 36 pictures in batches of 12: 3 steps an epoch. */
#define COMMON "-a tinynet --size 16 --backend ref -b 12 --progress none"
enum { MAX = 64, PARAMS = 10 }; /* tinynet: weights and biases of five layers */

/* @return what it said, to be freed */
static char *train(const char *args)
{
    test_run r;
    char *err;

    test_dptrain(&r, COMMON " %s", args);
    if (r.code) fail_msg("%s: exit %d: %s", args, r.code, r.err);
    err = r.err;
    r.err = NULL;
    test_run_free(&r);
    return err;
}

static void refused(int code, const char *words, const char *args)
{
    test_run r;

    test_dptrain(&r, COMMON " --epochs 1 -o none %s data", args);
    if (r.code != code || !strstr(r.err, words))
        fail_msg("%s: exit %d, wanted %d and \"%s\": %s", args, r.code, code, words, r.err);
    assert_int_not_equal(access(test_format("%s/none", test_work()), F_OK), 0);
    test_run_free(&r);
}

/* A trained network to begin with: "base" below test_work(). */
static void base(void)
{
    static int done;

    if (!done++) free(train("--epochs 3 --lr 0.05 --seed 3 -q -o base data"));
}

static dpt_st_file *opened(const char *path)
{
    dpt_st_file *f;
    dpl_text why = { "" };

    if (dpt_st_open(&f, test_format("%s/%s", test_work(), path), &why)) fail_msg("%s", why.s);
    return f;
}

/* Which tensors of two files are equal; last: those of the last layer. */
static void compare(const char *one, const char *two, int *equal, int *last)
{
    dpt_st_file *a = opened(one), *b = opened(two);

    *equal = *last = 0;
    assert_int_equal(dpt_st_count(a), PARAMS);
    for (size_t i = 0; i < PARAMS; i++) {
        const dpt_st_tensor *x = dpt_st_at(a, i), *y = dpt_st_find(b, x->name);

        assert_non_null(y);
        if (x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0) continue;
        if (!strncmp(x->name, "fc.", 3))
            ++*last;
        else
            ++*equal;
    }
    dpt_st_close(&a);
    dpt_st_close(&b);
}

static double last_val_loss(const char *folder)
{
    double loss[MAX];
    const int n = test_log_numbers(test_format("%s/log.jsonl", folder), "val.loss", loss, MAX);

    assert_true(n > 0);
    return loss[n - 1];
}

/* A rate of 0 leaves what was loaded, and the evaluation measures just that. */
static void the_weights_are_those_of_the_file(void **state)
{
    double step[MAX];
    int equal, last;
    char *err;

    (void)state;
    base();
    err = train("--weights base/model.safetensors --lr 0 --epochs 1 -o zero data");
    assert_non_null(strstr(err, "=> loaded weights 'base/model.safetensors'\n"));
    assert_null(strstr(err, "\nweights: "));
    assert_null(strstr(err, "warning: --weights"));
    free(err);
    compare("base/model.safetensors", "zero/model.safetensors", &equal, &last);
    assert_int_equal(equal, PARAMS - 2);
    assert_int_equal(last, 2);
    assert_true(last_val_loss("zero") == last_val_loss("base"));
    assert_int_equal(test_log_numbers("zero/log.jsonl", "step", step, MAX), 4); /* and its val */
    assert_true(step[0] == 1);
}

/* Nothing but weights comes from the file: with those that a run has at first anyway, it is that run to
 * the last bit, though the optimizer of the file's run had gone three steps. */
static void epoch_and_optimizer_begin_anew(void **state)
{
    double want[MAX], got[MAX];
    int equal, last;

    (void)state;
    free(train("--lr 0 --seed 5 --epochs 1 -q -o first data"));
    free(train("--lr 0.05 --seed 5 --epochs 2 -q -o plain data"));
    free(train("--lr 0.05 --seed 5 --epochs 2 -q --weights first/model.safetensors -o same data"));
    assert_int_equal(test_log_numbers("plain/log.jsonl", "train.loss", want, MAX), 6);
    assert_int_equal(test_log_numbers("same/log.jsonl", "train.loss", got, MAX), 6);
    assert_memory_equal(got, want, 6 * sizeof *got);
    compare("plain/model.safetensors", "same/model.safetensors", &equal, &last);
    assert_int_equal(equal + last, PARAMS);
    compare("first/model.safetensors", "same/model.safetensors", &equal, &last);
    assert_int_equal(equal + last, 0);
}

static void another_number_of_classes_keeps_the_last_layer_new(void **state)
{
    int equal, last;
    char *err;

    (void)state;
    base();
    test_work_tree("four/train", 4, 6);
    test_work_tree("four/val", 4, 2);
    free(train("--lr 0 --seed 9 --epochs 1 -q -o new4 four"));
    err = train("--lr 0 --seed 9 --epochs 1 --weights base/best.safetensors -o tuned4 four");
    assert_non_null(strstr(err, "weights: base/best.safetensors has 3 classes, the data has 4: the "
                                "last layer (fc.weight, fc.bias) keeps its initial values\n"));
    free(err);
    compare("base/best.safetensors", "tuned4/model.safetensors", &equal, &last);
    assert_int_equal(equal, PARAMS - 2);
    assert_int_equal(last, 0);
    compare("new4/model.safetensors", "tuned4/model.safetensors", &equal, &last);
    assert_int_equal(equal, 0);
    assert_int_equal(last, 2);
}

static void a_resumed_run_needs_the_file_no_more(void **state)
{
    double want[MAX], got[MAX];
    int equal, last;
    size_t len;
    char *args;

    (void)state;
    base();
    args = (char *)test_read_file(test_format("%s/base/best.safetensors", test_work()), &len);
    test_write_file(test_format("%s/copy.safetensors", test_work()), args, len);
    free(args);
    free(train("--weights copy.safetensors --lr 0.02 --epochs 2 -q -o tuned data"));
    free(train("--initial-checkpoint copy.safetensors --lr 0.02 --epochs 2 --steps 4 -q -o cut "
               "data"));
    args = (char *)test_read_file(test_format("%s/cut/args.json", test_work()), &len);
    assert_non_null(memmem(args, len, "\"weights\":\"copy.safetensors\"", 28));
    free(args);
    assert_int_equal(unlink(test_format("%s/copy.safetensors", test_work())), 0);
    free(train("--resume cut -q data"));
    assert_int_equal(test_log_numbers("tuned/log.jsonl", "train.loss", want, MAX), 6);
    assert_int_equal(test_log_numbers("cut/log.jsonl", "train.loss", got, MAX), 6);
    assert_memory_equal(got, want, 6 * sizeof *got);
    compare("tuned/model.safetensors", "cut/model.safetensors", &equal, &last);
    assert_int_equal(equal + last, PARAMS);
}

static void another_size_is_warned_about(void **state)
{
    char *err;

    (void)state;
    base();
    err = train("--size 24 --weights base/best.safetensors --epochs 1 -o large data");
    assert_non_null(strstr(err, "warning: --weights: the pictures of base/best.safetensors were 16 "
                                "x 16, mean [0.485,0.456,0.406]"));
    free(err);
}

/* base's tensors, without the one of that name; rename: under that name instead. */
static void write_without(const char *name, const char *rename)
{
    dpt_st_file *f = opened("base/best.safetensors");
    dpt_st_tensor t[PARAMS];
    size_t n = 0;

    for (size_t i = 0; i < PARAMS; i++) {
        t[n] = *dpt_st_at(f, i);
        if (!strcmp(t[n].name, name)) {
            if (!rename) continue;
            t[n].name = rename;
        }
        n++;
    }
    assert_int_equal(
        dpt_st_write(test_format("%s/odd.safetensors", test_work()), t, n, NULL, 0, NULL, NULL), 0);
    dpt_st_close(&f);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    (void)state;
    base();
    refused(3, "--weights: nowhere: No such file or directory; give a .safetensors file",
            "--weights nowhere");
    refused(3, "--weights base: this is a folder", "--weights base");
    refused(3, "not a safetensors file", "--weights data/train/c0/0000.jpg");
    refused(2, "--weights: the name is empty", "--weights=");
    refused(2, "goes on with one; leave one of the two out", "--weights x --resume base");
    refused(3, "resume from the model.safetensors of a run, or begin a run with it by --weights",
            "--resume base/best.safetensors");
    refused(2, "learns nothing, so there is no --weights", "--weights x --devices sim:1ms");
    refused(3, "holds the weights of a tinynet, this run trains a resnet18: give --arch tinynet",
            "--weights base/best.safetensors --size 32 -a resnet18");
    write_without("conv2.bias", NULL);
    refused(3, "--weights: odd.safetensors: tensor 'conv2.bias' of tinynet is missing; is --arch",
            "--weights odd.safetensors");
    write_without("conv3.bias", "conv3.blas");
    refused(3, "'conv3.bias' of tinynet is missing, the first of 2 that do not fit",
            "--weights odd.safetensors");
    write_without("none", NULL);
    refused(3, "its tensors are those of tinynet: give --arch tinynet",
            "--weights odd.safetensors --size 32 -a resnet50");
}

static void what_is_only_measured_is_named_by_resume(void **state)
{
    test_run r;

    (void)state;
    test_dptrain(&r, "-e --weights w.safetensors data");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "give --evaluate --resume w.safetensors\n"));
    test_run_free(&r);
}

/* What the processes of a run compare before they begin. */
static uint64_t digest(const char *weights)
{
    char words[512];
    test_inside x;
    uint64_t sum;

    snprintf(words, sizeof words, COMMON " --devices cpu -o inside -f --weights %s data", weights);
    test_inside_open(&x, words);
    if (test_inside_prepare(&x) || test_inside_model(&x)) fail_msg("%s: %s", weights, x.why.s);
    sum = dpt_run_digest(&x.run);
    test_inside_close(&x);
    return sum;
}

static void processes_with_other_weights_do_not_meet(void **state)
{
    uint64_t sum;

    (void)state;
    base();
    sum = digest("base/model.safetensors");
    write_without("none", NULL); /* the same on another machine, in another place */
    assert_true(digest("odd.safetensors") == digest("base/best.safetensors"));
    free(train("--epochs 1 --lr 0.05 --seed 4 -q -o base4 data"));
    assert_true(digest("base4/model.safetensors") != sum);
    assert_true(digest("base/model.safetensors") == sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_are_those_of_the_file),
        cmocka_unit_test(epoch_and_optimizer_begin_anew),
        cmocka_unit_test(another_number_of_classes_keeps_the_last_layer_new),
        cmocka_unit_test(a_resumed_run_needs_the_file_no_more),
        cmocka_unit_test(another_size_is_warned_about),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(what_is_only_measured_is_named_by_resume),
        cmocka_unit_test(processes_with_other_weights_do_not_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
