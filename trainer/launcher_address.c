/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, and lists as Slurm writes them. */
#include "trainer/launcher.h"

#include "base/number.h"
#include "dpload.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Slurm's lists --- */

/* The first number of "01-04,07]…" into out; *s moves behind the bracket. */
static int first_of_range(const char **s, char *out, size_t len)
{
    const size_t digits = strspn(*s, "0123456789"), all = strcspn(*s, "]");

    if (!digits || digits >= len || (*s)[all] != ']') return DPL_EINVAL;
    if (strspn(*s, "0123456789-,") != all) return DPL_EINVAL;
    memcpy(out, *s, digits);
    out[digits] = '\0';
    *s += all + 1;
    return DPL_OK;
}

int dpt_launcher_first_host(const char *list, char *out, size_t len)
{
    size_t n = 0;

    out[0] = '\0';
    for (const char *s = list; *s && *s != ',';) {
        if (*s == '[') {
            s++;
            if (first_of_range(&s, out + n, len - n)) goto bad;
            n += strlen(out + n);
        } else if ((isalnum((unsigned char)*s) || strchr("-._", *s)) && n + 1 < len) {
            out[n++] = *s++;
            out[n] = '\0';
        } else {
            goto bad;
        }
    }
    if (n) return DPL_OK;
bad:
    out[0] = '\0';
    return DPL_EINVAL;
}

int dpt_launcher_count_of(const char *list, int i)
{
    for (const char *s = list;;) {
        char *end;
        const long count = strtol(s, &end, 10);
        long times = 1;

        if (end == s || count < 1 || count > INT32_MAX) return -1;
        if (!strncmp(end, "(x", 2)) {
            s = end + 2;
            times = strtol(s, &end, 10);
            if (end == s || times < 1 || *end++ != ')') return -1;
        }
        if (i < times) return (int)count;
        i -= (int)times;
        if (*end != ',') return -1;
        s = end + 1;
    }
}

/* --- addresses --- */

static int refuse(const char *name, const char *text, dpl_text *why)
{
    return dpl_fail(why, DPL_EINVAL,
                    "%s \"%s\" is no HOST or HOST:PORT (IPv6 in brackets, as in [fd00::1]:29501)",
                    name, text);
}

static int parse_port(const char *s, int *port)
{
    uint64_t n;

    if (dpl_parse_uint(s, &n) || n < 1 || n > 65535) return DPL_EINVAL;
    *port = (int)n;
    return DPL_OK;
}

int dpt_launcher_join_address(char out[DPT_LAUNCHER_ADDRESS_MAX], const char *name,
                              const char *text, int port, dpl_text *why)
{
    const char *host = text, *colon = strchr(text, ':');
    size_t len = strlen(text);

    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (!end || (end[1] && (end[1] != ':' || parse_port(end + 2, &port))))
            return refuse(name, text, why);
        host++;
        len = (size_t)(end - host);
        colon = memchr(host, ':', len);
    } else if (colon && !strchr(colon + 1, ':')) {
        if (parse_port(colon + 1, &port)) return refuse(name, text, why);
        len = (size_t)(colon - host);
        colon = NULL;
    } /* else more than one colon: IPv6 without a port */
    if (!len || len > 255) return refuse(name, text, why);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr("-._:%", host[i]))
            return refuse(name, text, why);
    snprintf(out, DPT_LAUNCHER_ADDRESS_MAX, colon ? "[%.*s]:%d" : "%.*s:%d", (int)len, host, port);
    return DPL_OK;
}
