/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the status codes and the library's version. */
#include "dpload.h"

const char *dpl_status_text(int status)
{
#define STATUS_CASE(name, value, text)                                                             \
    case name: return text;
    switch (status) {
        DPL_STATUS_LIST(STATUS_CASE)
    }
#undef STATUS_CASE
    return "unknown status";
}

const char *dpl_version(void)
{
    return DPL_VERSION;
}
