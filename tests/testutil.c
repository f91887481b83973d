/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share; see testutil.h. */
#include "tests/testutil.h"

#include "base/rng.h"
#include "dpload.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_FOLDERS = 1024 };

/* --- files --- */

static char *folders[MAX_FOLDERS];
static int n_folders;
static pid_t folders_owner; /* children of a fork leave them alone */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    remove(path);
    return 0;
}

/* A test may have taken away the rights that removing its files needs. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)where;
    if (type == FTW_D || type == FTW_DNR) chmod(path, 0700);
    return 0;
}

static void remove_folders(void)
{
    if (getpid() != folders_owner) return;
    while (n_folders) {
        char *path = folders[--n_folders];
        nftw(path, open_up, 16, FTW_PHYS);
        nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
        free(path);
    }
}

const char *test_tempdir(void)
{
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];

    if (n_folders == MAX_FOLDERS) fail_msg("too many temporary folders");
    if (!folders_owner) atexit(remove_folders);
    if (folders_owner && folders_owner != getpid()) fail_msg("test_tempdir() in a forked child");
    folders_owner = getpid();
    snprintf(path, sizeof path, "%s/dpl-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) fail_msg("%s: %s", path, strerror(errno));
    folders[n_folders] = strdup(path);
    assert_non_null(folders[n_folders]);
    return folders[n_folders++];
}

const char *test_format(const char *format, ...)
{
    static char buffers[16][4096];
    static unsigned next;
    char *buffer = buffers[next++ % 16];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(buffer, sizeof buffers[0], format, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof buffers[0]) fail_msg("test_format(): text too long");
    return buffer;
}

void test_make_folder(const char *path)
{
    char copy[PATH_MAX];

    if (snprintf(copy, sizeof copy, "%s/", path) >= (int)sizeof copy)
        fail_msg("%s: too long", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) fail_msg("%s: %s", copy, strerror(errno));
        *slash = '/';
    }
}

void test_write_file(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");

    if (!f) fail_msg("%s: %s", path, strerror(errno));
    if (len && fwrite(data, 1, len, f) != len) fail_msg("%s: %s", path, strerror(errno));
    if (fclose(f)) fail_msg("%s: %s", path, strerror(errno));
}

uint8_t *test_read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t cap = 0, n;

    if (!f) fail_msg("%s: %s", path, strerror(errno));
    *len = 0;
    do {
        cap = cap ? 2 * cap : 65536;
        data = realloc(data, cap);
        assert_non_null(data);
        n = fread(data + *len, 1, cap - *len, f);
        *len += n;
    } while (*len == cap);
    if (ferror(f)) fail_msg("%s: cannot be read", path);
    fclose(f);
    data[*len] = 0; /* so that text can be searched; there is room as *len < cap */
    return data;
}

/* --- pictures --- */

static dpl_rng stream(uint64_t seed)
{
    dpl_rng r;

    dpl_rng_init(&r, seed, 0, 0, DPL_RNG_MIX);
    return r;
}

static uint8_t clamp(double v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

/* One disc and one slanted edge over a slow gradient, then noise of a few steps. */
uint8_t *test_picture(int w, int h, uint64_t seed)
{
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3), *p = rgb;
    dpl_rng r = stream(seed);
    double base[3], slope[3], disc[3];
    const double cx = w * dpl_rng_uniform(&r, 0.3, 0.7), cy = h * dpl_rng_uniform(&r, 0.3, 0.7);
    const double radius = (w < h ? w : h) * dpl_rng_uniform(&r, 0.15, 0.35);
    const double tilt = dpl_rng_uniform(&r, -1, 1);

    assert_non_null(rgb);
    for (int c = 0; c < 3; c++) {
        base[c] = dpl_rng_uniform(&r, 20, 160);
        slope[c] = dpl_rng_uniform(&r, -60, 90);
        disc[c] = dpl_rng_uniform(&r, 0, 255);
    }
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            const int inside = hypot(x - cx, y - cy) < radius;
            const double edge = (y - h * 0.8) + tilt * (x - w * 0.5) > 0 ? 50 : 0;
            for (int c = 0; c < 3; c++) {
                const double smooth = base[c] + slope[c] * (x + y) / (w + h) + edge;
                *p++ = clamp((inside ? disc[c] : smooth) + dpl_rng_uniform(&r, -4, 4));
            }
        }
    }
    return rgb;
}

uint8_t *test_jpeg(int w, int h, uint64_t seed, const tool_jpeg_spec *spec, size_t *len)
{
    static const tool_jpeg_spec usual = { .quality = 90, .h_samp = 2, .v_samp = 2 };
    uint8_t *rgb = test_picture(w, h, seed), *jpeg = NULL;

    assert_int_equal(tool_jpeg_write(spec ? spec : &usual, rgb, w, h, &jpeg, len), DPL_OK);
    free(rgb);
    return jpeg;
}

void test_make_tree(const char *root, int classes, int files)
{
    for (int c = 0; c < classes; c++) {
        test_make_folder(test_format("%s/c%d", root, c));
        for (int i = 0; i < files; i++) {
            const uint64_t seed = (uint64_t)c * 1000 + (uint64_t)i;
            dpl_rng r = stream(~seed);
            const int w = 40 + (int)dpl_rng_below(&r, 51), h = 40 + (int)dpl_rng_below(&r, 51);
            size_t len;
            uint8_t *jpeg = test_jpeg(w, h, seed, NULL, &len);
            test_write_file(test_format("%s/c%d/%04d.jpg", root, c, i), jpeg, len);
            free(jpeg);
        }
    }
}

/* --- processes --- */

int test_run_self(char *const *argv, char *const *envp, int quiet)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&files);
    if (quiet) posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, envp), 0);
    posix_spawn_file_actions_destroy(&files);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
