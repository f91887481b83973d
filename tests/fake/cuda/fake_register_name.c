/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a function by its address. dladdr() knows exported names only, and kernels are static,
 * so read the symbol table of the file. */
#include "tests/fake/cuda/fake_register.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char *find(const char *file, ElfW(Addr) offset)
{
    const ElfW(Ehdr) *const header = (const void *)file;
    const ElfW(Shdr) *const sections = (const void *)(file + header->e_shoff);

    for (unsigned i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *const s = &sections[i];
        const ElfW(Sym) *const symbols = (const void *)(file + s->sh_offset);
        const size_t n = s->sh_size / sizeof *symbols;

        if (s->sh_type != SHT_SYMTAB) continue;
        for (size_t k = 0; k < n; k++) {
            if (symbols[k].st_value == offset && (symbols[k].st_info & 0xF) == STT_FUNC)
                return strdup(file + sections[s->sh_link].sh_offset + symbols[k].st_name);
        }
    }
    return NULL;
}

char *fake_symbol_name(const void *function)
{
    struct link_map *map = NULL;
    struct stat st;
    Dl_info info;
    char *name = NULL;
    void *file = MAP_FAILED;
    int fd = -1;

    if (!dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP)) goto done;
    if ((fd = open(map->l_name[0] ? map->l_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC)) < 0 ||
        fstat(fd, &st))
        goto done;
    file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) name = find(file, (ElfW(Addr))function - map->l_addr);
done:
    if (file != MAP_FAILED) munmap(file, (size_t)st.st_size);
    if (fd >= 0) close(fd);
    return name;
}
