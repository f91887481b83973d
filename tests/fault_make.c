/* SPDX-License-Identifier: Apache-2.0 */
/* Bad picture files; see fault_make.h. Markers are found by walking the segments: their two bytes may
 * stand anywhere else. */
#include "tests/fault_make.h"

#include "base/rng.h"
#include "dpload.h"
#include "tests/testutil.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, SOI_BYTES = 2, EOI_BYTES = 2, SOS = 0xda };

static uint8_t *files[MAX_FILES];
static int n_files;

void fault_free_all(void)
{
    while (n_files) free(files[--n_files]);
}

static fault_file keep(uint8_t *bytes, size_t len)
{
    assert_non_null(bytes);
    if (n_files == MAX_FILES) fail_msg("fault_free_all() was not called often enough");
    files[n_files++] = bytes;
    return (fault_file){ bytes, len };
}

fault_file fault_bytes(const void *bytes, size_t len)
{
    uint8_t *copy = malloc(len + 1);

    assert_non_null(copy);
    if (len) memcpy(copy, bytes, len);
    return keep(copy, len);
}

fault_file fault_encode(const tool_jpeg_spec *spec, const uint8_t *rgb, int w, int h)
{
    uint8_t *bytes;
    size_t len;

    assert_int_equal(tool_jpeg_write(spec, rgb, w, h, &bytes, &len), DPL_OK);
    return keep(bytes, len);
}

fault_file fault_jpeg(const tool_jpeg_spec *spec, int w, int h, uint64_t seed)
{
    uint8_t *rgb = test_picture(w, h, seed);
    const fault_file f = fault_encode(spec, rgb, w, h);

    free(rgb);
    return f;
}

/* --- splicing --- */

/* `drop` bytes at `at` make way for n others. */
static fault_file splice(fault_file f, size_t at, size_t drop, const void *bytes, size_t n)
{
    uint8_t *out = malloc(f.len - drop + n + 1);

    assert_non_null(out);
    assert_true(at + drop <= f.len);
    memcpy(out, f.bytes, at);
    if (n) memcpy(out + at, bytes, n);
    memcpy(out + at + n, f.bytes + at + drop, f.len - at - drop);
    return keep(out, f.len - drop + n);
}

fault_file fault_cut(fault_file f, unsigned percent)
{
    return fault_bytes(f.bytes, f.len * percent / 100);
}

fault_file fault_less(fault_file f, size_t n)
{
    return fault_bytes(f.bytes, f.len - n);
}

fault_file fault_more(fault_file f, const void *bytes, size_t n)
{
    return splice(f, f.len, 0, bytes, n);
}

fault_file fault_insert(fault_file f, size_t at, const void *bytes, size_t n)
{
    return splice(f, at, 0, bytes, n);
}

/* --- JPEG --- */

typedef struct segment {
    int marker;
    size_t at, payload, len; /* of the marker; of what follows its length; bytes of that */
} segment;

/* The segment at *at, which moves behind it. */
static segment next_segment(fault_file f, size_t *at)
{
    const uint8_t *b = f.bytes + *at;
    segment s;

    assert_true(*at + 4 <= f.len && b[0] == 0xff);
    s = (segment){ b[1], *at, *at + 4, ((size_t)b[2] << 8 | b[3]) - 2 };
    *at = s.payload + s.len;
    return s;
}

static segment first_segment(fault_file f, int marker)
{
    size_t at = SOI_BYTES;
    segment s;

    do {
        s = next_segment(f, &at);
    } while (s.marker != marker && s.marker != SOS);
    assert_int_equal(s.marker, marker);
    return s;
}

static int is_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

size_t fault_frame_at(fault_file f)
{
    size_t at = SOI_BYTES;
    segment s;

    do {
        s = next_segment(f, &at);
    } while (!is_frame(s.marker));
    return s.payload;
}

fault_file fault_dims(fault_file f, unsigned w, unsigned h)
{
    const uint8_t size[4] = { (uint8_t)(h >> 8), (uint8_t)h, (uint8_t)(w >> 8), (uint8_t)w };

    return splice(f, fault_frame_at(f) + 1, sizeof size, size, sizeof size);
}

fault_file fault_ids(fault_file f, const uint8_t three[3])
{
    const fault_file out = fault_bytes(f.bytes, f.len);
    const size_t frame = fault_frame_at(f), scan = first_segment(f, SOS).payload;

    for (int k = 0; k < 3; k++) {
        out.bytes[frame + 6 + 3 * (size_t)k] = three[k];
        out.bytes[scan + 1 + 2 * (size_t)k] = three[k];
    }
    return out;
}

fault_file fault_flips(fault_file f, int n, uint64_t seed)
{
    const fault_file out = fault_bytes(f.bytes, f.len);
    const segment scan = first_segment(f, SOS);
    const size_t from = scan.payload + scan.len;
    dpl_rng r;

    dpl_rng_init(&r, seed, 0, 0, DPL_RNG_MIX);
    while (n--) {
        const size_t at = from + dpl_rng_below(&r, (uint32_t)(f.len - from - EOI_BYTES));

        out.bytes[at] ^= (uint8_t)(1u << dpl_rng_below(&r, 8));
    }
    return out;
}

fault_file fault_junk_before(fault_file f, int marker, size_t n)
{
    uint8_t junk[64];

    assert_true(n <= sizeof junk);
    memset(junk, 0x11, sizeof junk);
    return splice(f, first_segment(f, marker).at, 0, junk, n);
}

fault_file fault_drop(fault_file f, int marker)
{
    size_t at = SOI_BYTES;
    fault_file out = f;
    segment s;

    while ((s = next_segment(out, &at)).marker != SOS) {
        if (s.marker != marker) continue;
        out = splice(out, s.at, s.len + 4, NULL, 0);
        at = s.at;
    }
    return out;
}

fault_file fault_after_start(fault_file f, int marker, const void *payload, size_t n)
{
    const uint8_t head[4] = { 0xff, (uint8_t)marker, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2) };

    return splice(splice(f, SOI_BYTES, 0, payload, n), SOI_BYTES, 0, head, sizeof head);
}

static void put_little(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> 8 * i);
}

fault_file fault_exif(fault_file f, uint32_t orientation, uint32_t count)
{
    uint8_t app1[] = { 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                       18,  1,   3,   0,   0, 0, 0,   0,   0,  0, 0, 0, 0, 0, 0, 0 };

    put_little(app1 + 20, count);
    put_little(app1 + 24, orientation);
    return fault_after_start(f, 0xe1, app1, sizeof app1);
}

fault_file fault_adobe(fault_file f, int transform)
{
    const uint8_t app14[] = { 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, (uint8_t)transform };

    return fault_after_start(f, 0xee, app14, sizeof app14);
}

fault_file fault_repeat_scan(fault_file f, int n)
{
    size_t last = f.len - EOI_BYTES, bytes;
    uint8_t *out;

    while (f.bytes[last] != 0xff || f.bytes[last + 1] != SOS) last--;
    bytes = f.len - EOI_BYTES - last;
    out = malloc(f.len + (size_t)n * bytes);
    assert_non_null(out);
    memcpy(out, f.bytes, last);
    for (size_t k = 0; k <= (size_t)n; k++) memcpy(out + last + k * bytes, f.bytes + last, bytes);
    memcpy(out + last + ((size_t)n + 1) * bytes, "\xff\xd9", EOI_BYTES);
    return keep(out, f.len + (size_t)n * bytes);
}

fault_file fault_lose_restart(fault_file f, int k)
{
    size_t at = first_segment(f, SOS).payload;

    for (; k > 0; at++) {
        assert_true(at + 1 < f.len);
        if (f.bytes[at] == 0xff && f.bytes[at + 1] >= 0xd0 && f.bytes[at + 1] <= 0xd7) k--;
    }
    return splice(f, at - 1, 2, NULL, 0);
}

/* The one block: DC difference 0 is code 00, end of block is code 1010 in the usual tables. */
fault_file fault_no_tables(void)
{
    static const uint8_t frame[] = { 0xff, 0xc0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0 };
    static const uint8_t scan[] = { 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x2b, 0xff, 0xd9 };
    uint8_t table[5 + 64] = { 0xff, 0xdb, 0, 67, 0 };
    fault_file f = fault_bytes("\xff\xd8", 2);

    memset(table + 5, 1, 64);
    f = fault_more(f, table, sizeof table);
    f = fault_more(f, frame, sizeof frame);
    return fault_more(f, scan, sizeof scan);
}
