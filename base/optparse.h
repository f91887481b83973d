/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options from one table: the same table parses (getopt_long), prints -h and --help,
 * and is what man pages and completions are made from. */
#ifndef DPL_BASE_OPTPARSE_H
#define DPL_BASE_OPTPARSE_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpl_opt_type {
    DPL_OPT_FLAG,   /* int: set to 1; --no-NAME sets 0 */
    DPL_OPT_COUNT,  /* int: +1 each time (-v -v, -vv); the environment sets the start */
    DPL_OPT_INT,    /* int within [min, max] */
    DPL_OPT_UINT64, /* uint64_t within [min, max] */
    DPL_OPT_SIZE,   /* uint64_t bytes or a count: 64, 4k, 2GiB */
    DPL_OPT_DOUBLE, /* double within [min, max] */
    DPL_OPT_SHARE,  /* double: 0.001 or 0.1% */
    DPL_OPT_PAIR,   /* double[2]: "lo,hi", lo <= hi, both within [min, max] */
    DPL_OPT_TWO,    /* double[2]: "x,y", each within [min, max] */
    DPL_OPT_THREE,  /* double[3]: the same with three numbers */
    DPL_OPT_FOUR,   /* double[4]: the same with four */
    DPL_OPT_STRING, /* const char *: points into argv or the environment */
    DPL_OPT_CHOICE  /* int: index in `choices` */
} dpl_opt_type;

typedef struct dpl_opt {
    const char *name;    /* long name without dashes; NULL ends the table */
    char letter;         /* short letter, 0 = none */
    const char *aliases; /* other long names, blank separated, NULL = none */
    dpl_opt_type type;
    size_t offset;   /* of the value in the options struct */
    double min, max; /* numbers; min == max == 0: no limit; max 0 with min > 0: no upper limit */
    const char *choices; /* DPL_OPT_CHOICE: "step|cosine|none"; "a||c": 1 cannot be chosen */
    const char *arg;     /* "N", "DIR" for the help; NULL for flags */
    const char *help;    /* one line or more; says the default in brackets */
    const char *group;   /* heading in --help; NULL = as the option before */
    int brief;           /* 1 = also shown by -h */
} dpl_opt;

typedef struct dpl_opt_spec {
    const char *program;  /* "dptrain" */
    const char *usage;    /* "[options] DIR" */
    const char *summary;  /* one line on what it does */
    const char *examples; /* for -h and --help, lines */
    const char *see;      /* last line, "More: --help, man dptrain" */
    const char *env;      /* prefix: DPTRAIN_ makes DPTRAIN_BATCH=64 a default; NULL = none */
    const dpl_opt *opts;
} dpl_opt_spec;

enum { DPL_OPT_RUN = 0, DPL_OPT_HELPED = 1 };

/** Fill the struct `values` from the environment, then from argv (argv wins). -h and --help write
 *  to out and give DPL_OPT_HELPED. Options may stand after operands; "--" ends them. A long name may
 *  be cut short as long as it is the beginning of one option only. An empty variable counts as unset;
 *  for a flag it is on, off, yes, no, true, false, 1 or 0. One call at a time (getopt's own state).
 *  argv is reordered: operands are argv[*operand .. argc-1].
 *  given (may be NULL): [number of table entries] set to 1 where argv or the environment set it.
 *  @return DPL_OPT_RUN, DPL_OPT_HELPED, DPL_ENOMEM, or DPL_EINVAL: the text says what was asked, what
 *          is allowed, and the nearest option for an unknown one */
int dpl_opt_parse(const dpl_opt_spec *spec, int argc, char **argv, void *values, char *given,
                  int *operand, FILE *out, dpl_text *why);

void dpl_opt_help(const dpl_opt_spec *spec, FILE *out, int full);

/** Print the current value of entry o in `values` as --NAME or the environment would take it ("on" or
 *  "off" for a flag). @return bytes as snprintf */
int dpl_opt_format(const dpl_opt *o, const void *values, char *buf, size_t len);

/** "64", "4k", "2GiB", "1.5M" to a number; k M G T are powers of 1000, Ki Mi Gi Ti (and KiB …) of
 *  1024, in either case and with or without B. Parts of a byte are dropped.
 *  @return 0, or -1 when s is not one or does not fit. */
int dpl_parse_size(const char *s, uint64_t *out);

/** "38ms", "1.5s", "200us", "2h", "3m" to nanoseconds; a bare number is seconds. @return 0 or -1 */
int dpl_parse_time_ns(const char *s, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
