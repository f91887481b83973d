/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean --batch?": the option whose name is fewest slips away. */
#include "base/optvalue.h"

#include <string.h>

enum { LONGEST = 40 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to add, drop, change or swap with the neighbour to make b from a. */
static int distance(const char *a, const char *b)
{
    const int na = (int)strlen(a), nb = (int)strlen(b);
    int row[3][LONGEST + 1]; /* row i is at i % 3 */

    if (na > LONGEST || nb > LONGEST) return LONGEST;
    for (int k = 0; k <= nb; k++) row[0][k] = k;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3];
        const int *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (int k = 1; k <= nb; k++) {
            now[k] = up[k - 1] + (a[i - 1] != b[k - 1]);
            now[k] = smaller(now[k], smaller(up[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                now[k] = smaller(now[k], up2[k - 2] + 1);
            }
        }
    }
    return row[na % 3][nb];
}

/* One candidate; keeps it in buf when it is the nearest so far. */
static void consider(const char *name, const char *candidate, size_t n, const char *prefix,
                     int *best, char *buf, size_t len)
{
    char full[LONGEST + 1];
    int d;

    if (snprintf(full, sizeof full, "%s%.*s", prefix, (int)n, candidate) > LONGEST) return;
    d = distance(name, full);
    if (d >= *best) return;
    *best = d;
    snprintf(buf, len, "%s", full);
}

const char *dpl_opt_nearest(const dpl_opt_spec *spec, const char *name, char *buf, size_t len)
{
    const int limit = (int)strlen(name) / 3; /* one slip in a short name, two in "interpolatoin" */
    int best = (limit > 2 ? 2 : limit < 1 ? 1 : limit) + 1;
    const int none = best;

    for (const dpl_opt *o = spec->opts; o->name; o++) {
        consider(name, o->name, strlen(o->name), "", &best, buf, len);
        if (o->type == DPL_OPT_FLAG) {
            consider(name, o->name, strlen(o->name), "no-", &best, buf, len);
        }
        for (const char *a = o->aliases; a && *a; a += strspn(a, " ")) {
            const size_t n = strcspn(a, " ");
            consider(name, a, n, "", &best, buf, len);
            a += n;
        }
    }
    consider(name, "help", 4, "", &best, buf, len);
    return best < none ? buf : NULL;
}
