/* SPDX-License-Identifier: Apache-2.0 */
/* Training from list files, and with the listing of folders kept in index files: the same steps as
 * from the folders themselves, recorded and resumed; what cannot work is refused in one line. */
#include "tests/dptrain_runs.h"
#include "tests/indexutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COMMON "-a tinynet --size 16 --backend ref -b 8 --lr 0.01 --seed 7 --progress none"
enum { MAX = 64 };

/* Every picture of data/train or data/val in the order of the folders; the label is the class's name
 * or number. */
static void write_list(const char *name, const char *part, int files, const char *root, int named)
{
    static const char *const names[] = { "c0", "c1", "c2" };
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < files; i++) {
            fprintf(f, "%s%s/c%d/%04d.jpg\t", root, part, c, i);
            fprintf(f, named ? "%s\n" : "%.0s%d\n", names[c], c);
        }
    fclose(f);
    test_write_file(test_format("%s/%s", test_work(), name), text, len);
    free(text);
}

static void make_lists(void)
{
    write_list("train.tsv", "train", 12, "data/", 1);
    write_list("val.tsv", "val", 4, "data/", 1);
    write_list("data/train.txt", "train", 12, "", 0);
}

/* Losses and evaluations of a run's log. */
typedef struct numbers {
    double loss[MAX], val[MAX];
    int losses, vals;
} numbers;

static numbers logged(const char *folder)
{
    const char *file = test_format("%s/log.jsonl", folder);
    numbers n;

    n.losses = test_log_numbers(file, "train.loss", n.loss, MAX);
    n.vals = test_log_numbers(file, "val.loss", n.val, MAX);
    return n;
}

static void same(const numbers *a, const numbers *b)
{
    assert_int_equal(a->losses, b->losses);
    assert_int_equal(a->vals, b->vals);
    assert_memory_equal(a->loss, b->loss, (size_t)a->losses * sizeof *a->loss);
    assert_memory_equal(a->val, b->val, (size_t)a->vals * sizeof *a->val);
}

/* Run; the messages must hold `says`. */
static void train(int code, const char *says, const char *args)
{
    test_run r;

    test_dptrain(&r, COMMON " %s", args);
    if (r.code != code || !strstr(r.err, says))
        fail_msg("%s: exit %d, wanted %d and \"%s\": %s", args, r.code, code, says, r.err);
    test_run_free(&r);
}

static const numbers *from_folders(void)
{
    static numbers n;

    if (n.losses) return &n;
    train(0, "train data/train: 36 pictures", "--epochs 2 -o folders data");
    n = logged("folders");
    assert_int_equal(n.losses, 10);
    assert_int_equal(n.vals, 2);
    return &n;
}

static int args_hold(const char *folder, const char *text)
{
    size_t len;
    uint8_t *args = test_read_file(test_format("%s/%s/args.json", test_work(), folder), &len);
    const int found = memmem(args, len, text, strlen(text)) != NULL;

    free(args);
    return found;
}

static void lists_train_as_their_folders_do(void **state)
{
    numbers n;

    (void)state;
    make_lists();
    train(0, "val val.tsv: 12 pictures", "--epochs 2 --list train.tsv --val-list val.tsv -o lists");
    n = logged("lists");
    same(&n, from_folders());
    assert_true(args_hold("lists", "\"val-list\":\"val.tsv\""));
    assert_true(args_hold("lists", "{\"path\":\"train.tsv\",\"pictures\":36"));
    /* with DIR relative paths begin there */
    train(0, "train data/train.txt: 36 pictures, 3 classes (0, 1, 2)",
          "--epochs 2 --list data/train.txt -o rooted data");
    n = logged("rooted");
    assert_int_equal(n.vals, 0);
    assert_memory_equal(n.loss, from_folders()->loss, 5 * sizeof *n.loss);
}

static void a_resumed_run_takes_its_lists_again(void **state)
{
    numbers n;

    (void)state;
    make_lists();
    train(0, "train.tsv", "--epochs 2 --steps 7 --list train.tsv --val-list val.tsv -o again");
    train(0, "val val.tsv: 12 pictures", "--epochs 2 --resume again");
    n = logged("again");
    assert_int_equal(n.losses, from_folders()->losses);
    assert_memory_equal(n.loss, from_folders()->loss, (size_t)n.losses * sizeof *n.loss);
    train(2, "no DIR", "--resume folders");
}

static void lists_are_split_and_evaluated(void **state)
{
    (void)state;
    make_lists();
    train(0, "val part of train.tsv: 9 pictures",
          "--epochs 1 --list train.tsv --val-split 25% -o split");
    train(0, "evaluated 12 pictures", "--evaluate --resume split --val-list val.tsv --val-split 0");
    train(0, "evaluated 36 pictures", "--evaluate --resume split --list train.tsv --val-split 0");
}

static void index_files_keep_both_listings(void **state)
{
    numbers n;

    (void)state;
    test_work();
    test_index_settle(); /* the folders were made just now */
    train(0, "train data/train: index a.idx: No such file",
          "--epochs 2 --index a.idx --val-index b.idx -o kept data");
    n = logged("kept");
    same(&n, from_folders());
    train(0, "val data/val: index b.idx: used",
          "--epochs 1 --index a.idx --val-index b.idx -o kept2 data");
    train(0, "train data/train: index a.idx: used", "--epochs 1 --index a.idx -o kept3 data");
    train(0, "val part of data/train: index c.idx: used",
          "--epochs 1 --index c.idx --val-split 25% -o kept4 data/train");
    assert_true(args_hold("kept", "\"val-index\":\"b.idx\""));
}

static void what_cannot_work_is_refused(void **state)
{
    static const char blank[] = "data/train/c0/0000.jpg\t0\nx.jpg\t\n";

    (void)state;
    make_lists();
    test_write_file(test_format("%s/blank.tsv", test_work()), blank, strlen(blank));
    train(2, "--val-list val.tsv without --list", "--val-list val.tsv data");
    train(2, "--val-split 0.1 with --val-list",
          "--list train.tsv --val-list val.tsv --val-split 10%");
    train(2, "--list: the name is empty", "--list= data");
    train(2, "--index: only a folder is indexed", "--list train.tsv --index i");
    train(2, "--val-index i: data/train has no val/", "--val-index i data/train");
    train(3, "list none.tsv: No such file", "--list none.tsv");
    train(3, "list blank.tsv: 1 of 2 pictures have no label", "--list blank.tsv");
    train(3, "expected the folder where the paths of train.tsv begin", "--list train.tsv nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_train_as_their_folders_do),
        cmocka_unit_test(a_resumed_run_takes_its_lists_again),
        cmocka_unit_test(lists_are_split_and_evaluated),
        cmocka_unit_test(index_files_keep_both_listings),
        cmocka_unit_test(what_cannot_work_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
