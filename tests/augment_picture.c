/* SPDX-License-Identifier: Apache-2.0 */
/* Formula pictures and expected data; see augment_picture.h. */
#include "tests/augment_picture.h"

#include "tests/testutil.h"

static uint32_t formula(uint32_t x, uint32_t y, uint32_t c, uint32_t seed)
{
    if (seed % 3 == 1) return x * 3 + y * 5 + c * 40 + seed;
    if (seed % 3 == 2) return (x / 3 + y / 2 + c + seed) % 2 * 255;
    uint32_t v = x * 2654435761U + y * 2246822519U + c * 3266489917U + seed * 668265263U;
    v ^= v >> 15;
    v *= 2246822519U;
    return v ^ v >> 13;
}

void test_formula_picture(uint8_t *out, int w, int h, int seed)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++)
                *out++ = (uint8_t)formula((uint32_t)x, (uint32_t)y, (uint32_t)c, (uint32_t)seed);
}

/* As zlib's crc32(), which is not there for every architecture that kernels are tested on. */
uint32_t test_crc(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint32_t crc = ~0U;

    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    }
    return ~crc;
}

FILE *test_data_open(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s cannot be opened: run the test in the root of the source tree", path);
    return f;
}

int test_data_line(FILE *f, char buf[256])
{
    while (fgets(buf, 256, f))
        if (*buf != '#') return 1;
    return 0;
}
