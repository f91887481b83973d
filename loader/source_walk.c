/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tree of class folders; see source_walk.h. */
#include "loader/source_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

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

/* folder: "" or with '/' at the end. */
static int ignore_file(dpl_walk *w, const char *folder, const char *name)
{
    size_t len;

    if (w->ignored++) return DPL_OK;
    len = strlen(folder) + strlen(name) + 1;
    if (!(w->ignored_example = malloc(len))) return DPL_ENOMEM;
    snprintf(w->ignored_example, len, "%s%s", folder, name);
    return DPL_OK;
}

/* The next entry that is neither hidden nor junk; NULL at the end (*err DPL_OK) or on an error. */
static struct dirent *next_entry(DIR *dir, const dpl_walk *w, const char *path, int *err,
                                 dpl_text *why)
{
    struct dirent *e;

    do {
        errno = 0;
        e = readdir(dir);
    } while (e && is_junk(e->d_name));
    *err =
        e || !errno ? DPL_OK : dpl_fail(why, DPL_EIO, "%s/%s: %s", w->root, path, strerror(errno));
    return e;
}

/* Open a folder below the root and stamp it: before it is listed, so that a change meanwhile shows.
 * NULL: why. */
static DIR *open_folder(dpl_walk *w, const char *path, struct stat *st, int *err, dpl_text *why)
{
    const int fd =
        openat(w->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
    DIR *dir = NULL;
    dpl_stamp stamp;

    if (fd < 0 || fstat(fd, st) < 0 || !(dir = fdopendir(fd))) {
        *err = dpl_fail(why, DPL_EIO, "%s/%s: %s; its pictures would be lost", w->root, path,
                        strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    stamp = dpl_stamp_of(st);
    *err = w->stamped ? dpl_stamps_add(&w->stamps, *path ? path : ".", &stamp) : DPL_OK;
    if (!*err) return dir;
    closedir(dir);
    return NULL;
}

int dpl_walk_root(dpl_walk *w, dpl_name_list *titles, dpl_text *why)
{
    struct stat st;
    struct dirent *e;
    int err;
    DIR *dir = open_folder(w, "", &st, &err, why);

    if (!dir) return err;
    while (!err && (e = next_entry(dir, w, "", &err, why))) {
        const entry_kind kind = kind_of(dir, e);

        if (kind == ENTRY_FOLDER) {
            err = dpl_name_list_add(titles, "", e->d_name);
        } else if (kind == ENTRY_FILE) {
            w->loose_pictures += (uint64_t)dpl_is_picture_name(e->d_name);
            err = ignore_file(w, "", e->d_name);
        } else { /* a class may stand behind it: leaving it out would shift every label */
            err = dpl_fail(why, DPL_EIO, "%s/%s: %s; repair or remove it", w->root, e->d_name,
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
    char path[DPL_PATH_BYTES]; /* of the folder being listed, from the root, with '/' at the end */
} class_walk;

static int walk_folder(class_walk *c, const level *parent);

static int enter(class_walk *c, const char *name, const level *from)
{
    const size_t len = strlen(c->path);
    int err;

    if (len + strlen(name) + 2 > sizeof c->path)
        return dpl_fail(c->why, DPL_EIO, "%s/%s%.64s: the path is too long", c->walk->root, c->path,
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

    while (!err && (e = next_entry(dir, c->walk, c->path, &err, c->why))) {
        const entry_kind kind = kind_of(dir, e);

        if (kind == ENTRY_FOLDER)
            err = dpl_name_list_add(folders, "", e->d_name);
        else if (dpl_is_picture_name(e->d_name)) /* a dangling link is a bad sample when read */
            err = dpl_name_list_add(c->names, c->path + c->base_len, e->d_name);
        else if (kind == ENTRY_ERROR)
            err = dpl_fail(c->why, DPL_EIO, "%s/%s%s: %s", c->walk->root, c->path, e->d_name,
                           strerror(errno));
        else
            err = ignore_file(c->walk, c->path, e->d_name);
    }
    return err;
}

/* A link back to a parent: everything in it is being listed already. */
static int is_loop(const level *parent, const struct stat *st)
{
    for (const level *l = parent; l; l = l->parent)
        if (l->dev == st->st_dev && l->ino == st->st_ino) return 1;
    return 0;
}

static int walk_folder(class_walk *c, const level *parent)
{
    level here = { parent, 0, 0, parent->depth + 1 };
    dpl_name_list folders = { 0 };
    struct stat st;
    DIR *dir;
    int err, loop;

    if (here.depth > MAX_DEPTH)
        return dpl_fail(c->why, DPL_EDATA, "%s/%.512s: more than %d folders deep", c->walk->root,
                        c->path, MAX_DEPTH);
    if (!(dir = open_folder(c->walk, c->path, &st, &err, c->why))) return err;
    here.dev = st.st_dev;
    here.ino = st.st_ino;
    loop = is_loop(parent, &st);
    if (!loop) err = list_folder(c, dir, &folders);
    closedir(dir);
    for (uint64_t k = 0; !err && k < folders.count; k++)
        err = enter(c, dpl_name_at(&folders, k), &here);
    dpl_name_list_free(&folders);
    return err;
}

int dpl_walk_class(dpl_walk *w, const char *title, dpl_name_list *names, dpl_text *why)
{
    level top = { NULL, 0, 0, 0 }; /* a link back to the root is a loop too */
    class_walk *c = malloc(sizeof *c);
    struct stat st;
    int err;

    if (!c) return DPL_ENOMEM;
    if (!fstat(w->root_fd, &st)) {
        top.dev = st.st_dev;
        top.ino = st.st_ino;
    }
    c->walk = w;
    c->names = names;
    c->why = why;
    c->base_len = strlen(title) + 1;
    snprintf(c->path, sizeof c->path, "%s/", title); /* a name of one entry always fits */
    err = walk_folder(c, &top);
    free(c);
    return err;
}
