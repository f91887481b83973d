/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a list file, with and without given classes. What is taken must be paths
 * of the text and labels of the classes. */
#include "loader/source_list_parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int holds)
{
    if (!holds) abort();
}

static void check(const dpl_list *l, size_t len)
{
    require(l->count > 0);
    for (uint64_t i = 0; i < l->count; i++) {
        const char *path = l->text + l->path[i];

        require(l->path[i] < len);
        require(memchr(path, 0, len + 1 - l->path[i]) != NULL);
        require(*path && *path != '#' && strlen(path) <= DPL_LIST_PATH_MAX && !strchr(path, '\n'));
        require(l->label[i] >= -1 && l->label[i] < (int64_t)l->titles.count);
    }
}

static void parse(const uint8_t *bytes, size_t len, const char *const *classes, int n)
{
    char *text = malloc(len + 1); /* its exact size, so that a read past it shows */
    dpl_list l = { 0 };
    dpl_text why = { "" };
    int err;

    require(text != NULL);
    memcpy(text, bytes, len);
    err = dpl_list_parse(&l, text, len, "list", classes, n, &why);
    require(!err || *why.s);
    if (!err) check(&l, len);
    dpl_list_fini(&l);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const classes[] = { "cat", "dog", "2", "cat" };

    parse(bytes, len, NULL, 0);
    parse(bytes, len, classes, 4);
    return 0;
}
