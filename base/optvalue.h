/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the option parser: one value in, one value described. */
#ifndef DPL_BASE_OPTVALUE_H
#define DPL_BASE_OPTVALUE_H

#include "base/optparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Set entry o in values from text. @return 0, or -1 when the text is not a value of it */
int dpl_opt_set(const dpl_opt *o, void *values, const char *text);

/** What o takes: "a whole number from 1 to 1048576". */
void dpl_opt_expected(const dpl_opt *o, char *buf, size_t len);

/** The long name nearest to name (slips of one or two letters), or NULL. */
const char *dpl_opt_nearest(const dpl_opt_spec *spec, const char *name, char *buf, size_t len);

#ifdef __cplusplus
}
#endif
#endif
