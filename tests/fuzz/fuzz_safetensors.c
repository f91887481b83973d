/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader on any bytes: it must refuse or give tensors that lie within the file. */
#include "trainer/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
uint8_t fuzz_seen; /* visible to others, so that the compiler keeps the reads */

static void read_all(const dpt_st_file *f)
{
    char **list;
    size_t n;

    for (size_t i = 0; i < dpt_st_count(f); i++) {
        const dpt_st_tensor *t = dpt_st_at(f, i);
        const uint8_t *bytes = t->data;
        for (size_t k = 0; k < t->bytes; k++) fuzz_seen ^= bytes[k];
        if (!dpt_st_find(f, t->name)) abort();
    }
    if (!dpt_st_meta_list(f, "classes", &list, &n)) dpt_st_list_free(&list, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const int fd = memfd_create("input", 0);
    char path[64];
    dpt_st_file *f;

    if (fd < 0 || write(fd, data, len) != (ssize_t)len) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!dpt_st_open(&f, path, NULL)) read_all(f);
    dpt_st_close(&f);
    close(fd);
    return 0;
}
