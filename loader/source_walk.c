/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tree of class folders; see source_walk.h. */
#include "loader/source_walk.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 64 };

/* --- list of names --- */

int dpl_name_list_add(dpl_name_list *l, const char *prefix, const char *name)
{
    const size_t a = strlen(prefix), b = strlen(name);

    if (dpl_grow((void **)&l->offset, &l->offset_cap, (size_t)l->count + 1, sizeof *l->offset) ||
        dpl_grow((void **)&l->block, &l->block_cap, l->block_len + a + b + 1, 1))
        return DPL_ENOMEM;
    memcpy(l->block + l->block_len, prefix, a);
    memcpy(l->block + l->block_len + a, name, b + 1);
    l->offset[l->count++] = l->block_len;
    l->block_len += a + b + 1;
    return DPL_OK;
}

static int by_bytes(const void *a, const void *b, void *block)
{
    const char *names = block;

    return strcmp(names + *(const size_t *)a, names + *(const size_t *)b);
}

void dpl_name_list_sort(dpl_name_list *l, uint64_t first)
{
    if (l->count - first > 1)
        qsort_r(l->offset + first, (size_t)(l->count - first), sizeof *l->offset, by_bytes,
                l->block);
}

void dpl_name_list_trim(dpl_name_list *l)
{
    char *block = realloc(l->block, l->block_len + 1);
    size_t *offset = realloc(l->offset, ((size_t)l->count + 1) * sizeof *offset);

    if (block) {
        l->block = block;
        l->block_cap = l->block_len + 1;
    }
    if (offset) {
        l->offset = offset;
        l->offset_cap = (size_t)l->count + 1;
    }
}

size_t dpl_name_list_bytes(const dpl_name_list *l)
{
    return l->block_cap + l->offset_cap * sizeof *l->offset;
}

void dpl_name_list_free(dpl_name_list *l)
{
    free(l->block);
    free(l->offset);
    memset(l, 0, sizeof *l);
}

/* --- names that mean something --- */

int dpl_is_picture_name(const char *name)
{
    static const char types[][5] = { "jpg", "jpeg", "png", "webp", "ppm",
                                     "bmp", "pgm",  "tif", "tiff", "gif" };
    const char *dot = strrchr(name, '.');

    for (size_t k = 0; dot && k < sizeof types / sizeof *types; k++)
        if (!strcasecmp(dot + 1, types[k])) return 1;
    return 0;
}

/* Hidden entries and what desktop systems leave behind. */
static int is_junk(const char *name)
{
    static const char *const junk[] = { "Thumbs.db", "desktop.ini", "__MACOSX", "lost+found" };

    if (name[0] == '.') return 1;
    for (size_t k = 0; k < sizeof junk / sizeof *junk; k++)
        if (!strcasecmp(name, junk[k])) return 1;
    return 0;
}

/* --- walking --- */

typedef enum entry_kind { ENTRY_FILE, ENTRY_FOLDER, ENTRY_DANGLING, ENTRY_ERROR } entry_kind;

/* What an entry is, links followed. */
static entry_kind kind_of(DIR *dir, const struct dirent *e)
{
    struct stat st;

    if (e->d_type == DT_DIR) return ENTRY_FOLDER;
    if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) return ENTRY_FILE;
    if (!fstatat(dirfd(dir), e->d_name, &st, 0))
        return S_ISDIR(st.st_mode) ? ENTRY_FOLDER : ENTRY_FILE;
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) return ENTRY_DANGLING;
    return ENTRY_ERROR;
}

static int ignore_file(dpl_walk *w, const char *folder, const char *name)
{
    size_t len;

    if (w->ignored++) return DPL_OK;
    len = strlen(folder) + strlen(name) + 2;
    if (!(w->ignored_example = malloc(len))) return DPL_ENOMEM;
    snprintf(w->ignored_example, len, "%s/%s", folder, name);
    return DPL_OK;
}

/* The next entry that is neither hidden nor junk; NULL at the end (*err DPL_OK) or on an error. */
static struct dirent *next_entry(DIR *dir, const char *path, int *err, dpl_text *why)
{
    struct dirent *e;

    do {
        errno = 0;
        e = readdir(dir);
    } while (e && is_junk(e->d_name));
    *err = e || !errno ? DPL_OK : dpl_fail(why, DPL_EIO, "%s: %s", path, strerror(errno));
    return e;
}

int dpl_walk_root(dpl_walk *w, const char *root, dpl_name_list *titles, dpl_text *why)
{
    DIR *dir = opendir(root);
    struct dirent *e;
    int err = DPL_OK;

    if (!dir) return dpl_fail(why, DPL_EIO, "%s: %s", root, strerror(errno));
    while (!err && (e = next_entry(dir, root, &err, why))) {
        const entry_kind kind = kind_of(dir, e);

        if (kind == ENTRY_FOLDER) {
            err = dpl_name_list_add(titles, e->d_name, "");
        } else if (kind == ENTRY_FILE) {
            w->loose_pictures += (uint64_t)dpl_is_picture_name(e->d_name);
            err = ignore_file(w, root, e->d_name);
        } else { /* a class may stand behind it: leaving it out would shift every label */
            err = dpl_fail(why, DPL_EIO, "%s/%s: %s; repair or remove it", root, e->d_name,
                           kind == ENTRY_DANGLING ? "dangling link" : strerror(errno));
        }
    }
    closedir(dir);
    return err;
}

/* One folder on the way down; the chain of parents ends loops. */
typedef struct level {
    const struct level *parent;
    dev_t dev;
    ino_t ino;
    int depth;
} level;

typedef struct class_walk {
    dpl_walk *walk;
    dpl_name_list *names;
    dpl_text *why;
    size_t base_len;           /* bytes of path up to and including the class's folder and '/' */
    char path[DPL_PATH_BYTES]; /* of the folder being listed, with '/' at the end */
} class_walk;

static int walk_folder(class_walk *c, const level *parent);

static int enter(class_walk *c, const char *name, const level *from)
{
    const size_t len = strlen(c->path);
    int err;

    if (len + strlen(name) + 2 > sizeof c->path)
        return dpl_fail(c->why, DPL_EIO, "%s%.64s: the path is too long", c->path + c->base_len,
                        name);
    snprintf(c->path + len, sizeof c->path - len, "%s/", name);
    err = walk_folder(c, from);
    c->path[len] = 0;
    return err;
}

/* Files are listed at once, sub-folders are kept until this folder is closed: one open folder at a
 * time, however deep the tree. */
static int list_folder(class_walk *c, DIR *dir, dpl_name_list *folders)
{
    struct dirent *e;
    int err = DPL_OK;

    while (!err && (e = next_entry(dir, c->path, &err, c->why))) {
        const entry_kind kind = kind_of(dir, e);

        if (kind == ENTRY_FOLDER)
            err = dpl_name_list_add(folders, e->d_name, "");
        else if (dpl_is_picture_name(e->d_name)) /* a dangling link is a bad sample when read */
            err = dpl_name_list_add(c->names, c->path + c->base_len, e->d_name);
        else if (kind == ENTRY_ERROR)
            err = dpl_fail(c->why, DPL_EIO, "%s%s: %s", c->path, e->d_name, strerror(errno));
        else
            err = ignore_file(c->walk, c->path, e->d_name);
    }
    return err;
}

static int walk_folder(class_walk *c, const level *parent)
{
    level here = { parent, 0, 0, parent->depth + 1 };
    dpl_name_list folders = { 0 };
    struct stat st;
    DIR *dir;
    int err = DPL_OK;

    if (here.depth > MAX_DEPTH)
        return dpl_fail(c->why, DPL_EDATA, "%.512s: more than %d folders deep", c->path, MAX_DEPTH);
    if (!(dir = opendir(c->path)) || fstat(dirfd(dir), &st) < 0) {
        err = dpl_fail(c->why, DPL_EIO, "%s: %s; its pictures would be lost", c->path,
                       strerror(errno));
        if (dir) closedir(dir);
        return err;
    }
    here.dev = st.st_dev;
    here.ino = st.st_ino;
    for (const level *l = parent; l; l = l->parent) {
        if (l->dev != here.dev || l->ino != here.ino) continue;
        closedir(dir); /* a link back to a parent: everything in it is being listed already */
        return DPL_OK;
    }
    err = list_folder(c, dir, &folders);
    closedir(dir);
    for (uint64_t k = 0; !err && k < folders.count; k++)
        err = enter(c, dpl_name_at(&folders, k), &here);
    dpl_name_list_free(&folders);
    return err;
}

int dpl_walk_class(dpl_walk *w, const char *root, const char *title, dpl_name_list *names,
                   dpl_text *why)
{
    level top = { NULL, 0, 0, 0 }; /* a link back to the root is a loop too */
    class_walk *c = malloc(sizeof *c);
    struct stat st;
    int n, err;

    if (!c) return DPL_ENOMEM;
    if (!stat(root, &st)) {
        top.dev = st.st_dev;
        top.ino = st.st_ino;
    }
    c->walk = w;
    c->names = names;
    c->why = why;
    n = snprintf(c->path, sizeof c->path, "%s/%s/", root, title);
    c->base_len = (size_t)n;
    err = n > 0 && c->base_len < sizeof c->path
              ? walk_folder(c, &top)
              : dpl_fail(why, DPL_EIO, "%.64s…/%.64s: the path is too long", root, title);
    free(c);
    return err;
}
