/* SPDX-License-Identifier: Apache-2.0 */
/* The library's messages name fields of dpl_options ("max_bad 2: expected 0..1"). A program whose users
 * typed --max-bad passes them on in their words. */
#ifndef DPL_BASE_OPTNAMES_H
#define DPL_BASE_OPTNAMES_H

#include "base/optparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Put the names of options in place of those of fields, where the table has them: at the start of a
 *  text about options (status DPL_EINVAL, or a number follows), in "options.NAME", in "(NAME)" at its
 *  end, and in words with an underscore. Words of plain prose, and names of files, stay. */
void dpl_opt_name_fields(const dpl_opt *opts, int status, dpl_text *text);

#ifdef __cplusplus
}
#endif
#endif
