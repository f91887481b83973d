/* SPDX-License-Identifier: Apache-2.0 */
/* Hue with AVX2: eight pixels at once, each step in the precision of the C variant. */
#include "kernels/color.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#    include <string.h>

enum { BLOCK = 8 };

/* Eight doubles. */
typedef struct wide {
    __m256d low, high;
} wide;

static inline wide widen(__m256 v)
{
    return (wide){ _mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                   _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)) };
}

static inline __m256 narrow(wide v)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(v.high), _mm256_cvtpd_ps(v.low));
}

/* v * k + b, rounded twice and cut off to whole numbers. */
static inline __m256i whole(wide v, double k, double b)
{
    const __m256d f = _mm256_set1_pd(k), s = _mm256_set1_pd(b);
    const __m256d low = _mm256_add_pd(_mm256_mul_pd(v.low, f), s);
    const __m256d high = _mm256_add_pd(_mm256_mul_pd(v.high, f), s);
    return _mm256_set_m128i(_mm256_cvttpd_epi32(high), _mm256_cvttpd_epi32(low));
}

/* v (1 - gone) to the nearest */
static inline __m256i left_of(wide v, wide gone)
{
    const __m256d one = _mm256_set1_pd(1);
    const wide left = { _mm256_mul_pd(v.low, _mm256_sub_pd(one, gone.low)),
                        _mm256_mul_pd(v.high, _mm256_sub_pd(one, gone.high)) };
    return whole(left, 1, 0.5);
}

static inline __m256i choose(__m256i no, __m256i yes, __m256i mask)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

static inline __m256d turned_once(__m256d h)
{
    const __m256d one = _mm256_set1_pd(1);
    const __m256d turned = _mm256_add_pd(_mm256_div_pd(h, _mm256_set1_pd(6)), one);
    const __m256d over = _mm256_cmp_pd(turned, one, _CMP_GE_OQ);
    return _mm256_sub_pd(turned, _mm256_and_pd(over, one));
}

/* Hue bytes; range is at least 1. The two quotients that count are taken, not all three. */
static inline __m256i hue_of(const __m256i channel[3], __m256i high, __m256i range)
{
    const __m256i is_r = _mm256_cmpeq_epi32(channel[0], high);
    const __m256i is_g = _mm256_cmpeq_epi32(channel[1], high);
    const __m256i corner = choose(choose(_mm256_set1_epi32(4), _mm256_set1_epi32(2), is_g),
                                  _mm256_setzero_si256(), is_r);
    const __m256i plus = choose(choose(channel[1], channel[0], is_g), channel[2], is_r);
    const __m256i minus = choose(choose(channel[0], channel[2], is_g), channel[1], is_r);
    const __m256 by = _mm256_cvtepi32_ps(range);
    const wide p = widen(_mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(high, plus)), by));
    const wide m = widen(_mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(high, minus)), by));
    const wide c = widen(_mm256_cvtepi32_ps(corner));
    const wide exact = { _mm256_sub_pd(_mm256_add_pd(c.low, p.low), m.low),
                         _mm256_sub_pd(_mm256_add_pd(c.high, p.high), m.high) };
    const wide h = widen(narrow(exact));
    const wide turned = { turned_once(h.low), turned_once(h.high) };
    return whole(widen(narrow(turned)), 255, 0);
}

/* What the third value loses: s * along where it falls (the sign is set), else s (1 - along). */
static inline wide gone_of(__m256 s, __m256 along)
{
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), along);
    const wide falling = widen(_mm256_mul_ps(s, size)), sign = widen(along);
    const wide d = widen(size), ws = widen(s);
    const __m256d one = _mm256_set1_pd(1);
    return (wide){ _mm256_blendv_pd(_mm256_mul_pd(ws.low, _mm256_sub_pd(one, d.low)), falling.low,
                                    sign.low),
                   _mm256_blendv_pd(_mm256_mul_pd(ws.high, _mm256_sub_pd(one, d.high)),
                                    falling.high, sign.high) };
}

/* Three bytes of each of eight pixels, and nothing behind them. */
static inline void store(uint8_t *px, __m256i v)
{
    const __m256i pack = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0,
                                          1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i packed = _mm256_shuffle_epi8(v, pack);
    const __m128i high = _mm256_extracti128_si256(packed, 1);
    const int last = _mm_extract_epi32(high, 2);
    _mm_storeu_si128((__m128i *)px, _mm256_castsi256_si128(packed));
    _mm_storel_epi64((__m128i *)(px + 12), high);
    memcpy(px + 20, &last, sizeof last);
}

static inline void turn_block(uint8_t *px, const dpl_hue_table *t)
{
    const __m256i byte = _mm256_set1_epi32(255), at = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
    const __m256i places = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C, 0, 0x04040404,
                                             0x08080808, 0x0C0C0C0C);
    const __m256i four = _mm256_i32gather_epi32((const int *)(const void *)px, at, 1);
    const __m256i channel[3] = { _mm256_and_si256(four, byte),
                                 _mm256_and_si256(_mm256_srli_epi32(four, 8), byte),
                                 _mm256_and_si256(_mm256_srli_epi32(four, 16), byte) };
    const __m256i high = _mm256_max_epi32(channel[0], _mm256_max_epi32(channel[1], channel[2]));
    const __m256i low = _mm256_min_epi32(channel[0], _mm256_min_epi32(channel[1], channel[2]));
    const __m256i range = _mm256_sub_epi32(high, low);
    const __m256i gray = _mm256_cmpeq_epi32(range, _mm256_setzero_si256());

    const __m256 exact = _mm256_div_ps(_mm256_cvtepi32_ps(range), _mm256_cvtepi32_ps(high));
    /* grey has saturation 0, and stays as it is; black has none */
    const __m256i s8 = _mm256_andnot_si256(gray, whole(widen(exact), 255, 0));
    const __m256 s = _mm256_i32gather_ps(t->saturation, s8, 4);
    const __m256i h = hue_of(channel, high, _mm256_sub_epi32(range, gray));
    const __m256 along = _mm256_i32gather_ps(t->along, h, 4);
    const __m256i order = _mm256_i32gather_epi32((const int *)(const void *)t->order, h, 4);

    const wide v = widen(_mm256_cvtepi32_ps(high));
    const __m256i third = left_of(v, gone_of(s, along)), lowest = left_of(v, widen(s));
    const __m256i values = _mm256_or_si256(
        high, _mm256_or_si256(_mm256_slli_epi32(third, 8), _mm256_slli_epi32(lowest, 16)));
    store(px, _mm256_shuffle_epi8(values, _mm256_add_epi32(order, places)));
}

void dpl_hue_avx2(uint8_t *px, size_t n, double turn)
{
    dpl_hue_table t;
    dpl_hue_table_make(&t, turn);
    for (; n > BLOCK; n -= BLOCK, px += 3 * BLOCK) /* a pixel is read as four bytes */
        turn_block(px, &t);
    dpl_hue_c(px, n, turn);
}
#endif
