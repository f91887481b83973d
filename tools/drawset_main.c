/* SPDX-License-Identifier: Apache-2.0 */
/* drawset: a small labelled picture set as JPEG files, for trying things out. Everything is drawn
 * beside DIR and moved there at the end: DIR is whole or not there. */
#include "base/alloc.h"
#include "base/files.h"
#include "base/optparse.h"
#include "dpload.h"
#include "tools/drawset.h"

#include <errno.h>
#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    int train, val, quality, plain;
    double side[2];
    uint64_t seed;
} options;

#define AT(field) offsetof(options, field)
static const dpl_opt table[] = {
    { "train", 0, NULL, DPL_OPT_INT, AT(train), DRAWSET_CLASSES, 1000000, NULL, "N",
      "pictures in DIR/train, all classes together [600]", "Options", 1 },
    { "val", 0, NULL, DPL_OPT_INT, AT(val), DRAWSET_CLASSES, 1000000, NULL, "N",
      "pictures in DIR/val [180]", NULL, 1 },
    { "side", 0, "size", DPL_OPT_PAIR, AT(side), 16, 4096, NULL, "LO,HI",
      "width and height are drawn from LO to HI pixels [90,200]", NULL, 1 },
    { "quality", 0, NULL, DPL_OPT_INT, AT(quality), 1, 100, NULL, "N", "of the JPEG files [88]",
      NULL, 1 },
    { "plain", 0, NULL, DPL_OPT_FLAG, AT(plain), 0, 0, NULL, NULL,
      "no awkward files: no gray, CMYK, progressive, turned or broken ones [off]", NULL, 1 },
    { "seed", 0, NULL, DPL_OPT_UINT64, AT(seed), 0, 0, NULL, "N",
      "another number, another set; the same number, the same set [0]", NULL, 1 },
    { NULL, 0, NULL, DPL_OPT_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL, 0 },
};
static const dpl_opt_spec spec = {
    .program = "drawset",
    .usage = "[options] DIR",
    .summary = "Draw a labelled picture set: DIR/train and DIR/val with one folder per class.",
    .examples = "drawset pictures\ndrawset --train 6000 --side 300,600 --seed 1 large\n",
    .see = "Classes: red or blue; cross, ring or triangle. DIR must be new or empty.",
    .env = NULL,
    .opts = table,
};

static int write_file(const char *folder, const char *name, const void *data, size_t len,
                      dpl_text *why)
{
    char *path = dpl_path_join(folder, name);
    FILE *f = path ? fopen(path, "wb") : NULL;
    int err = DPL_OK;

    if (!path) return dpl_fail(why, DPL_ENOMEM, "out of memory");
    if (!f || fwrite(data, 1, len, f) != len) err = DPL_EIO;
    if (f && fclose(f)) err = DPL_EIO;
    if (err) dpl_fail(why, err, "%s: %s", path, strerror(errno));
    free(path);
    return err;
}

/* One picture as a JPEG file in memory, turned when the spec says so. */
static int encode(const tool_jpeg_spec *how, const uint8_t *rgb, uint8_t *turned, int w, int h,
                  uint8_t **out, size_t *len)
{
    if (!how->orientation) return tool_jpeg_write(how, rgb, w, h, out, len);
    drawset_turn(turned, rgb, w, h, how->orientation);
    if (how->orientation >= 5) return tool_jpeg_write(how, turned, h, w, out, len);
    return tool_jpeg_write(how, turned, w, h, out, len);
}

static int draw_one(const options *o, const char *const *folders, int subset, int i,
                    uint8_t *pixels[2], dpl_text *why)
{
    const int k = i % DRAWSET_CLASSES, awkward = subset == 0 && !o->plain;
    tool_jpeg_spec how = { .quality = o->quality };
    const char *word = awkward ? drawset_storage(&how, (uint64_t)i, o->quality) : "";
    uint8_t *file = NULL;
    char name[64];
    size_t len;
    int w, h, err;

    drawset_scene_size(&w, &h, (int)o->side[0], (int)o->side[1], o->seed, subset, (uint64_t)i);
    drawset_scene(pixels[0], w, h, k, o->seed, subset, (uint64_t)i);
    snprintf(name, sizeof name, "%s_%05d%s%s.jpg", drawset_class_name(k), i / DRAWSET_CLASSES,
             *word ? "_" : "", word);
    if ((err = encode(&how, pixels[0], pixels[1], w, h, &file, &len))) {
        return dpl_fail(why, err, "%s could not be encoded", name);
    }
    err = write_file(folders[k], name, file, len, why);
    if (!err && awkward && i == 0) { /* the one broken file: its end is missing */
        err = write_file(folders[k], "broken_000.jpg", file, len / 2, why);
    }
    free(file);
    return err;
}

static int draw_subset(const options *o, const char *root, int subset, dpl_text *why)
{
    const int n = subset ? o->val : o->train, side = (int)o->side[1];
    char *folders[DRAWSET_CLASSES] = { NULL };
    uint8_t *pixels[2] = { NULL, NULL };
    int err = DPL_OK;

    for (int k = 0; k < DRAWSET_CLASSES && !err; k++) {
        const int got = asprintf(&folders[k], "%s/%s/%s", root, subset ? "val" : "train",
                                 drawset_class_name(k));

        if (got < 0) folders[k] = NULL;
        err = folders[k] ? dpl_make_folder(folders[k], why)
                         : dpl_fail(why, DPL_ENOMEM, "out of memory");
    }
    for (int i = 0; i < 2 && !err; i++) {
        if (!(pixels[i] = dpl_calloc(3 * (size_t)side, (size_t)side))) err = DPL_ENOMEM;
        if (err) dpl_fail(why, err, "out of memory for pictures of %d pixels a side", side);
    }
    for (int i = 0; i < n && !err; i++) {
        err = draw_one(o, (const char *const *)folders, subset, i, pixels, why);
    }
    for (int k = 0; k < DRAWSET_CLASSES; k++) free(folders[k]);
    free(pixels[0]);
    free(pixels[1]);
    return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Everything into a folder beside dir, which then takes its name. rename() refuses a dir that holds
 * anything. */
static int draw_set(const options *o, const char *dir, dpl_text *why)
{
    char *work = NULL;
    int err;

    if (rmdir(dir) && errno != ENOENT) {
        return dpl_fail(why, DPL_EIO, "%s: %s; give a folder that is new or empty", dir,
                        strerror(errno));
    }
    if ((err = dpl_make_folder(dir, why)) == DPL_OK) {
        if (asprintf(&work, "%s.partial-XXXXXX", dir) < 0) work = NULL;
        if (!work) return dpl_fail(why, DPL_ENOMEM, "out of memory");
        if (!mkdtemp(work)) err = dpl_fail(why, DPL_EIO, "%s: %s", work, strerror(errno));
    }
    if (err) goto done;
    for (int subset = 0; subset < 2 && !err; subset++) err = draw_subset(o, work, subset, why);
    if (!err && chmod(work, 0755)) err = dpl_fail(why, DPL_EIO, "%s: %s", work, strerror(errno));
    if (!err && rename(work, dir)) err = dpl_fail(why, DPL_EIO, "%s: %s", dir, strerror(errno));
    if (err) nftw(work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
done:
    free(work);
    return err;
}

int main(int argc, char **argv)
{
    options o = { .train = 600, .val = 180, .quality = 88, .side = { 90, 200 } };
    dpl_text why = { "" };
    size_t len;
    int operand;
    const int got = dpl_opt_parse(&spec, argc, argv, &o, NULL, &operand, stdout, &why);

    if (got == DPL_OPT_HELPED) return 0;
    if (got == DPL_OPT_RUN && operand + 1 != argc) {
        dpl_fail(&why, DPL_EINVAL, "%s; usage: drawset [options] DIR",
                 operand == argc ? "the folder is missing" : "more than one folder");
    }
    if (got != DPL_OPT_RUN || operand + 1 != argc) {
        fprintf(stderr, "drawset: %s\n", why.s);
        return 2;
    }
    len = strlen(argv[operand]);
    while (len > 1 && argv[operand][len - 1] == '/') argv[operand][--len] = '\0';
    if (draw_set(&o, argv[operand], &why)) {
        fprintf(stderr, "drawset: %s\n", why.s);
        return 1;
    }
    printf("%s: %d + %d pictures of %d classes in train + val%s\n", argv[operand], o.train, o.val,
           DRAWSET_CLASSES,
           o.plain
               ? ""
               : "; train also holds awkward files and a broken one (blue_cross/broken_000.jpg)");
    return fflush(stdout) ? 1 : 0;
}
