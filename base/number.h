/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to text and back, the same in every locale. */
#ifndef DPL_BASE_NUMBER_H
#define DPL_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DPL_NUMBER_MAX = 40 }; /* bytes that every number fits in */

/** A short decimal text that reads back as the same double, with '.' as decimal point. "nan", "inf"
 *  and "-inf" for what is not finite. @return bytes as snprintf */
int dpl_number_text(double v, char *buf, size_t len);

/** All of s as a finite decimal number ("0.5", "-3", "1e-4"). @return 0, or -1 when it is not one */
int dpl_parse_double(const char *s, double *out);

/** All of s as a whole number; a '-' is taken only by the first. @return 0, or -1 */
int dpl_parse_int(const char *s, int64_t *out);
int dpl_parse_uint(const char *s, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
