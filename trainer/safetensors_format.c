/* SPDX-License-Identifier: Apache-2.0 */
/* Types and checksum of safetensors files; see safetensors_format.h. */
#include "trainer/safetensors_format.h"

#include <string.h>
#include <zlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are stored little-endian");

const dpt_st_dtype_info dpt_st_dtypes[] = {
    [DPT_ST_BOOL] = { "BOOL", 1, 0 }, [DPT_ST_U8] = { "U8", 1, 1 },
    [DPT_ST_F16] = { "F16", 2, 2 },   [DPT_ST_BF16] = { "BF16", 2, 3 },
    [DPT_ST_I32] = { "I32", 4, 4 },   [DPT_ST_F32] = { "F32", 4, 5 },
    [DPT_ST_F64] = { "F64", 8, 6 },   [DPT_ST_I64] = { "I64", 8, 7 },
};

char *dpt_st_crc_digits(char *header, size_t len)
{
    static const char key[] = "\"crc32\":\"";
    const size_t key_len = sizeof key - 1;
    char *at = header, *const end = header + len;

    while ((at = memmem(at, (size_t)(end - at), key, key_len))) {
        char *digits = at + key_len;
        if (at > header && (at[-1] == '{' || at[-1] == ',') && end - digits > DPT_ST_CRC_DIGITS &&
            digits[DPT_ST_CRC_DIGITS] == '"') {
            return digits;
        }
        at = digits;
    }
    return NULL;
}

uint32_t dpt_st_crc_more(uint32_t crc, const void *data, size_t len)
{
    return (uint32_t)crc32_z(crc, data, len);
}

uint32_t dpt_st_crc(const char *header, size_t header_len, const char *digits)
{
    const uint64_t n = header_len;
    const char *rest = header;
    uint32_t crc = dpt_st_crc_more(0, &n, sizeof n);

    if (digits) {
        crc = dpt_st_crc_more(crc, header, (size_t)(digits - header));
        crc = dpt_st_crc_more(crc, "00000000", DPT_ST_CRC_DIGITS);
        rest = digits + DPT_ST_CRC_DIGITS;
    }
    return dpt_st_crc_more(crc, rest, (size_t)(header + header_len - rest));
}
