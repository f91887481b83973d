/* SPDX-License-Identifier: Apache-2.0 */
/* "cpu:2,sim:38ms,bus=16G" to single device specs. */
#include "base/alloc.h"
#include "device/device.h"
#include "dpload.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 256 };

typedef struct piece {
    const char *s;
    size_t len;
    int times;
} piece;

/* "cpu:N" counts N times "cpu"; everything else once. @return DPL_OK or DPL_EINVAL */
static int expand_cpu(piece *p, dpl_text *why)
{
    int n = 0;

    if (p->len < 4 || memcmp(p->s, "cpu:", 4) != 0) return DPL_OK;
    for (size_t i = 4; i < p->len; i++) {
        if (!isdigit((unsigned char)p->s[i])) n = DEVICES_MAX + 1;
        if (n <= DEVICES_MAX) n = 10 * n + (p->s[i] - '0');
    }
    if (n < 1 || n > DEVICES_MAX) {
        return dpl_fail(why, DPL_EINVAL, "devices: \"%.*s\": cpu:N takes N from 1 to %d",
                        (int)p->len, p->s, DEVICES_MAX);
    }
    p->len = 3;
    p->times = n;
    return DPL_OK;
}

/* Cut list into pieces. @return their number, or DPL_EINVAL */
static int cut(piece *p, const char *list, dpl_text *why)
{
    int n = 0, total = 0, err;

    for (const char *s = list;; s++) {
        const size_t len = strcspn(s, ",");

        if (!len) {
            return dpl_fail(why, DPL_EINVAL, "devices: \"%s\": a name is missing%s", list,
                            *list ? " between two commas or at an end" : "");
        }
        if (n && memchr(s, '=', len) && !strncmp(p[n - 1].s, "sim", 3)) {
            p[n - 1].len += 1 + len; /* "bus=16G" belongs to the sim spec before it */
        } else {
            if (total >= DEVICES_MAX) break;
            p[n] = (piece){ s, len, 1 };
            if ((err = expand_cpu(&p[n], why))) return err;
            total += p[n++].times;
        }
        s += len;
        if (total > DEVICES_MAX) break;
        if (!*s) return n;
    }
    return dpl_fail(why, DPL_EINVAL, "devices: more than %d in \"%s\"", DEVICES_MAX, list);
}

int dpl_device_list_parse(char ***out, const char *list, dpl_text *why)
{
    piece p[DEVICES_MAX];
    const int n = cut(p, list, why);
    size_t total = 0, bytes = 0;
    char *text;

    *out = NULL;
    if (n < 0) return n;
    for (int i = 0; i < n; i++) {
        total += (size_t)p[i].times;
        bytes += (size_t)p[i].times * (p[i].len + 1);
    }
    if (!(*out = dpl_calloc(1, total * sizeof **out + bytes))) {
        return dpl_fail(why, DPL_ENOMEM, "devices");
    }
    text = (char *)(*out + total);
    for (int i = 0, k = 0; i < n; i++) {
        for (int t = 0; t < p[i].times; t++, text += p[i].len + 1) {
            (*out)[k++] = memcpy(text, p[i].s, p[i].len);
        }
    }
    return (int)total;
}
