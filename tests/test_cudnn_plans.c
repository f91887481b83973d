/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN answers for every operation of ResNet-18 and 50 on GPUs that are only described, against a
 * committed table: a plan is there, on tensor cores, deterministic, its scratch within the cap and far
 * below a feature map's copy. tests/plans/plan_table.c asks cuDNN, in a process of its own. */
#include "tests/backend_cases.h"
#include "tests/testutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 2048, FIELDS = 6, CAP = 256 << 20 };
enum { DEVICE, KEY, ENGINE, WORKSPACE, NOTES, LAYER };

typedef struct row {
    char line[LINE];
    char *field[FIELDS];
    int seen;
} row;

typedef struct table {
    row *row;
    size_t rows;
    char version[64];
} table;

static table committed;
static table elsewhere; /* the other GPUs' plans that are compiled at run time: `make test-plans` */
static char folder[1024];  /* of this program */
static char installed[64]; /* cuDNN's version, "" = none */

static int split(row *r)
{
    char *at = r->line;

    r->line[strcspn(r->line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) {
        r->field[i] = at;
        at = strchr(at, '\t');
        if (!at) return i == FIELDS - 1;
        *at++ = '\0';
    }
    return 0;
}

static int read_table(const char *path, table *t)
{
    FILE *f = fopen(path, "r");
    char line[LINE];

    if (!f) return -1;
    while (fgets(line, sizeof line, f)) {
        row *r;

        if (sscanf(line, "# cuDNN %63s", t->version) == 1) continue;
        t->row = realloc(t->row, (t->rows + 1) * sizeof *t->row);
        if (!t->row) break;
        r = &t->row[t->rows++];
        memset(r, 0, sizeof *r);
        memcpy(r->line, line, sizeof line);
    }
    fclose(f);
    for (size_t i = 0; i < t->rows; i++) {
        if (!split(&t->row[i])) return -1; /* after realloc has moved them */
    }
    return t->rows > 0 ? 0 : -1;
}

static int read_committed(void)
{
    return read_table("tests/data/cudnn/plans.tsv", &committed) ||
           read_table("tests/data/cudnn/plans_elsewhere.tsv", &elsewhere);
}

static int find_cudnn(void **state)
{
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    FILE *f;
    (void)state;

    if (n <= 0) return -1;
    folder[n] = '\0';
    *strrchr(folder, '/') = '\0';
    if (access(test_format("%s/plan_table", folder), X_OK) == 0) {
        if (!(f = popen(test_format("'%s/plan_table' --version 2>/dev/null", folder), "r")))
            return -1;
        if (fscanf(f, "%63s", installed) != 1) installed[0] = '\0';
        pclose(f);
    }
    return read_committed();
}

static void needs_cudnn(void)
{
    if (TEST_UNDER_TSAN || !installed[0]) skip(); /* cuDNN is not instrumented */
}

/* Compiling at run time takes cuDNN three times as long under AddressSanitizer, which sees no more of
 * our code by it than by convolutions. */
static void needs_cudnn_and_time(void)
{
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    needs_cudnn();
}

static row *find(const char *device, const char *key)
{
    for (size_t i = 0; i < committed.rows; i++) {
        row *r = &committed.row[i];
        if (strcmp(r->field[DEVICE], device) == 0 && strcmp(r->field[KEY], key) == 0) return r;
    }
    return NULL;
}

/* What must hold with every version of cuDNN. */
static void good(const row *r)
{
    const int conv = strstr(r->field[KEY], " conv ") || strstr(r->field[KEY], " dgrad ") ||
                     strstr(r->field[KEY], " wgrad ");
    const int fp32 = strncmp(r->field[KEY], "fp32", 4) == 0;

    if (strstr(r->field[NOTES], "nd")) fail_msg("%s: not deterministic", r->field[LAYER]);
    if (conv && fp32 == (strstr(r->field[NOTES], "tc") != NULL)) {
        fail_msg("%s on %s: %s tensor cores", r->field[LAYER], r->field[DEVICE],
                 fp32 ? "fp32 on" : "16 bits without");
    }
    if (atoll(r->field[WORKSPACE]) > CAP / 4) { /* a copy of a feature map takes 200 MB here */
        fail_msg("%s on %s: %s bytes of scratch", r->field[LAYER], r->field[DEVICE],
                 r->field[WORKSPACE]);
    }
}

static void same(const row *got)
{
    row *want = find(got->field[DEVICE], got->field[KEY]);

    if (!want) {
        fail_msg("%s on %s is not in tests/data/cudnn/plans.tsv (tests/scripts/make_plan_table.sh "
                 "makes it): %s",
                 got->field[LAYER], got->field[DEVICE], got->field[KEY]);
    }
    want->seen = 1;
    if (strcmp(installed, committed.version) != 0) return; /* another cuDNN may choose otherwise */
    for (int i = ENGINE; i <= NOTES; i++) {
        if (strcmp(got->field[i], want->field[i]) != 0) {
            fail_msg("%s on %s: %s, the table says %s (%s)", got->field[LAYER], got->field[DEVICE],
                     got->field[i], want->field[i], got->field[KEY]);
        }
    }
}

/* Everything a part of the script prints is in the table. @return how many rows */
static int compare(const char *part)
{
    FILE *f =
        popen(test_format("ASAN_OPTIONS=detect_leaks=0 tests/scripts/make_plan_table.sh '%s' %s",
                          folder, part),
              "r");
    int rows = 0, rc;
    row got = { .seen = 0 };

    assert_non_null(f);
    while (fgets(got.line, sizeof got.line, f)) {
        assert_true(split(&got));
        good(&got);
        same(&got);
        rows++;
    }
    rc = pclose(f);
    assert_true(WIFEXITED(rc));
    assert_int_equal(WEXITSTATUS(rc), 0);
    return rows;
}

static void convolutions_have_plans_without_a_driver(void **state)
{
    (void)state;
    needs_cudnn();
    assert_true(compare("conv") > 4 * 2 * 150);
}

static void all_else_has_plans_on_sm_90(void **state)
{
    (void)state;
    needs_cudnn_and_time();
    assert_true(compare("sm_90") > 80);
}

static void every_form_has_a_plan_on_the_other_gpus(void **state)
{
    (void)state;
    needs_cudnn_and_time();
    assert_true(compare("forms") > 4 * 12);
}

/* Runs after the others: rows that nobody asked for are of a network that is no more. */
static void the_table_has_nothing_else(void **state)
{
    (void)state;
    needs_cudnn_and_time();
    for (size_t i = 0; i < committed.rows; i++) {
        if (!committed.row[i].seen) fail_msg("nobody asks for %s", committed.row[i].field[KEY]);
    }
}

/* The table itself, also where there is no cuDNN. */
static void the_committed_plans_are_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < committed.rows; i++) good(&committed.row[i]);
    for (size_t i = 0; i < elsewhere.rows; i++) good(&elsewhere.row[i]);
}

/* What plan_table says of a spoiled ResNet-18, over the fake driver or none. @return its exit status */
static int plant(const char *name, const char *options, int driver, char *text, size_t len)
{
    FILE *f = popen(
        test_format("ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH='%s'"
                    "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} '%s/plan_table' %s --plant %s "
                    "tests/data/cudnn/sm_90.json resnet18:224:256:bf16 2>&1",
                    test_format("%s/%s", folder, driver ? "nogpu" : "none"), folder, options, name),
        "r");
    int rc;

    assert_non_null(f);
    text[fread(text, 1, len - 1, f)] = '\0';
    rc = pclose(f);
    assert_true(WIFEXITED(rc));
    return WEXITSTATUS(rc);
}

static void what_cudnn_cannot_do_is_refused_by_name(void **state)
{
    char text[8192];

    (void)state;
    needs_cudnn();
    assert_int_equal(plant("mask", "--rest --forms", 1, text, sizeof text), 1);
    assert_non_null(strstr(text, "bn1 forward: "));
    assert_non_null(strstr(text, "cuDNN has no engine for it on this GPU"));
}

static void building_can_be_canceled(void **state)
{
    char text[8192];

    (void)state;
    needs_cudnn();
    assert_int_equal(plant("none", "--conv --cancel", 0, text, sizeof text), 1);
    assert_non_null(strstr(text, "canceled while plans were built"));
}

/* Without a driver, which brings engines that are compiled at run time, tensor cores would cost a padded
 * copy of both feature maps, 206 MB: refused, and what remains is seen. */
static void channels_that_need_padding_fall_off_tensor_cores(void **state)
{
    static char text[65536];
    row r = { .seen = 0 };
    const char *at, *line;

    (void)state;
    needs_cudnn();
    assert_int_equal(plant("channels", "--conv", 0, text, sizeof text), 0);
    at = strstr(text, "256x60x56x56");
    assert_non_null(at);
    for (line = at; line > text && line[-1] != '\n';) line--;
    snprintf(r.line, sizeof r.line, "%.*s", (int)strcspn(line, "\n"), line);
    assert_true(split(&r));
    assert_string_equal(r.field[LAYER], "layer1.0.conv1 forward");
    assert_string_equal(r.field[NOTES], "-");
    assert_true(atoll(r.field[WORKSPACE]) < 1 << 20);
}

/* The executor's host code over the fake runtime; only running a plan is left out. */
static void the_executor_runs_dry(void **state)
{
    static const char *const want[] = {
        "train: 0, 26 plans run, 1 times ready, from 0\n",
        "again: 0, 26 plans run, 1 times ready, from 0\n",
        "evaluate: 0, 9 plans run, 0 times ready",
        "fewer: 0, 26 plans run, 1 times ready, from 0\n", /* than the executor was made for */
        "stopped: -11, 26 plans run, 1 times ready",       /* by ready(), with its status */
        "from 61162: conv2 forward: run the plan: CUDNN_STATUS_EXECUTION_FAILED", /* the third */
        "too many: -1, 0 plans run",
        "15 lines, fallback 0, memory 1\n" /* one, and one per convolution and direction */
    };
    static char text[8192];
    FILE *f;

    (void)state;
    needs_cudnn();
    if (access(test_format("%s/exec_dry", folder), X_OK) != 0) skip(); /* not under sanitizers */
    f = popen(test_format("LD_LIBRARY_PATH='%s/nogpu'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "
                          "'%s/exec_dry' tests/data/cudnn/sm_90.json tinynet 32 4 bf16 2>&1",
                          folder, folder),
              "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    assert_int_equal(pclose(f), 0);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (!strstr(text, want[i])) fail_msg("no \"%s\" in \"%s\"", want[i], text);
    }
}

static int rows_with(const char *command, const char *note)
{
    FILE *f = popen(command, "r");
    char line[LINE];
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) n += strstr(line, note) != NULL;
    assert_int_equal(pclose(f), 0);
    return n;
}

/* Second run from the cache; then every file is damaged in another way, and nothing is lost but time. */
static void the_cache_is_used_and_never_trusted(void **state)
{
    const char *const cache = test_format("%s/new/plans", test_tempdir());
    char command[4096];
    int plans, files = 0;
    FILE *list;
    char path[1024];

    (void)state;
    needs_cudnn();
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 '%s/plan_table' --conv --cache '%s' "
             "tests/data/cudnn/sm_90.json tinynet:32:64:bf16",
             folder, cache);
    plans = rows_with(command, "\t");
    assert_true(plans > 10);
    assert_int_equal(rows_with(command, ",cached"), plans);
    snprintf(path, sizeof path, "ls '%s'/*", cache);
    list = popen(path, "r");
    assert_non_null(list);
    while (fgets(path, sizeof path, list)) {
        size_t len;
        uint8_t *data;

        path[strcspn(path, "\n")] = '\0';
        data = test_read_file(path, &len);
        if (files % 3 == 0) data[len - len / 4] ^= 1; /* in the plan */
        if (files % 3 == 1) len /= 2;                 /* cut off */
        if (files % 3 == 2) data[3] ^= 1;             /* of something else */
        test_write_file(path, data, len);
        free(data);
        files++;
    }
    pclose(list);
    assert_int_equal(files, plans);
    assert_int_equal(rows_with(command, ",cached"), 0);
    assert_int_equal(rows_with(command, ",cached"), plans); /* they were written again */
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 '%s/plan_table' --conv --cache /proc/none "
             "tests/data/cudnn/sm_90.json tinynet:32:64:bf16",
             folder);
    assert_int_equal(rows_with(command, "\t"), plans); /* no folder, no harm */
}

/* sm_90 with other numbers, in a file of its own. @return the command that asks for its plans */
static const char *of_gpu(const char *cache, const char *numbers)
{
    const char *const path = test_format("%s/gpu.json", test_tempdir());
    const char *const make =
        test_format("sed '%s' tests/data/cudnn/sm_90.json >'%s'", numbers, path);

    assert_int_equal(system(make), 0);
    return test_format("ASAN_OPTIONS=detect_leaks=0 '%s/plan_table' --conv --cache '%s' '%s' "
                       "tinynet:32:64:bf16",
                       folder, cache, path);
}

/* Plans are shared by the GPUs of a machine that differ only in where they are plugged in. */
static void equal_gpus_share_the_cache(void **state)
{
    const char *const cache = test_format("%s/shared", test_tempdir());
    const char *const moved = "s/\"cudaDeviceId\":0/\"cudaDeviceId\":10/;"
                              "s/\"pciDeviceId\":0/\"pciDeviceId\":193/";
    const char *const smaller = "s/\"multiProcessorCount\":132/\"multiProcessorCount\":114/";
    int plans;

    (void)state;
    needs_cudnn();
    plans = rows_with(of_gpu(cache, ""), "\t");
    assert_true(plans > 10);
    assert_int_equal(rows_with(of_gpu(cache, moved), ",cached\t"), plans); /* as its own */
    assert_int_equal(rows_with(of_gpu(cache, smaller), ",cached"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_committed_plans_are_good),
        cmocka_unit_test(convolutions_have_plans_without_a_driver),
        cmocka_unit_test(all_else_has_plans_on_sm_90),
        cmocka_unit_test(every_form_has_a_plan_on_the_other_gpus),
        cmocka_unit_test(the_table_has_nothing_else),
        cmocka_unit_test(what_cudnn_cannot_do_is_refused_by_name),
        cmocka_unit_test(building_can_be_canceled),
        cmocka_unit_test(channels_that_need_padding_fall_off_tensor_cores),
        cmocka_unit_test(the_executor_runs_dry),
        cmocka_unit_test(the_cache_is_used_and_never_trusted),
        cmocka_unit_test(equal_gpus_share_the_cache),
    };

    return cmocka_run_group_tests(tests, find_cudnn, NULL);
}
