/* SPDX-License-Identifier: Apache-2.0 */
/* Where lines go, and when progress is written. */
#include "trainer/report.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { REDRAW_NS = 100000000 }; /* at most ten live lines a second */

static int set_and_not_empty(const char *name)
{
    const char *v = getenv(name);

    return v && *v;
}

static int wants_color(int choice, int tty)
{
    const char *term = getenv("TERM");

    if (choice != DPT_COLOR_AUTO) return choice == DPT_COLOR_ALWAYS;
    if (set_and_not_empty("CLICOLOR_FORCE")) return 1;
    return tty && !set_and_not_empty("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

/* The locale is not changed for this: the variables say what the terminal shows. */
static int wants_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (int i = 0; i < 3; i++) {
        const char *v = getenv(names[i]);
        if (v && *v) return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "utf-8");
    }
    return 0;
}

void dpt_report_init(dpt_report *r, const dpt_options *o)
{
    const char *term = getenv("TERM");
    const int tty = isatty(STDERR_FILENO);
    double seconds = -1;

    memset(r, 0, sizeof *r);
    r->out = stdout;
    r->err = stderr;
    r->quiet = o->quiet;
    r->verbose = o->verbose;
    r->json = o->json;
    r->print_freq = o->print_freq;
    r->world = 1;
    r->color = wants_color(o->color, tty);
    r->utf8 = wants_utf8();
    dpt_cli_progress(o->progress, &seconds);
    if (o->quiet || seconds == 0) return;
    r->live = seconds < 0 && tty && term && strcmp(term, "dumb") != 0;
    r->plain = !r->live;
    r->interval = seconds > 0 ? seconds : 0;
}

void dpt_report_process(dpt_report *r, int rank, int world)
{
    r->rank = rank;
    r->world = world;
    if (rank) r->live = r->plain = 0;
}

void dpt_report_wipe(dpt_report *r)
{
    if (r->shown) fputs("\r\033[K", r->err);
    r->shown = 0;
}

static void line(dpt_report *r, FILE *f, const char *prefix, const char *format, va_list ap)
    __attribute__((format(printf, 4, 0)));

static void line(dpt_report *r, FILE *f, const char *prefix, const char *format, va_list ap)
{
    char *text = NULL;

    if (vasprintf(&text, format, ap) < 0) text = NULL;
    dpt_report_wipe(r);
    if (f == r->out) fflush(r->err); /* both may be one terminal */
    fputs(prefix, f);
    dpl_print_visible(f, text ? text : "out of memory");
    free(text);
    fputc('\n', f);
    fflush(f);
}

void dpt_report_note(dpt_report *r, const char *format, ...)
{
    va_list ap;

    if (r->quiet > 1 || r->rank) return;
    va_start(ap, format);
    line(r, r->err, "", format, ap);
    va_end(ap);
}

void dpt_report_detail(dpt_report *r, const char *format, ...)
{
    va_list ap;

    if (!r->verbose || r->quiet > 1 || r->rank) return;
    va_start(ap, format);
    line(r, r->err, "", format, ap);
    va_end(ap);
}

void dpt_report_warn(dpt_report *r, const char *format, ...)
{
    va_list ap;

    if (r->quiet > 1 || r->rank) return;
    va_start(ap, format);
    line(r, r->err, r->color ? "dptrain: \033[33mwarning:\033[0m " : "dptrain: warning: ", format,
         ap);
    va_end(ap);
}

/* "dptrain: ", and of several processes which one it is. */
static const char *who(const dpt_report *r, char *buf, size_t len)
{
    if (r->world == 1) return "dptrain: ";
    snprintf(buf, len, "dptrain: process %d: ", r->rank);
    return buf;
}

void dpt_report_own(dpt_report *r, const char *format, ...)
{
    char name[48];
    va_list ap;

    if (r->quiet > 1) return;
    va_start(ap, format);
    line(r, r->err, who(r, name, sizeof name), format, ap);
    va_end(ap);
}

void dpt_report_result(dpt_report *r, const char *format, ...)
{
    va_list ap;

    if ((r->json && r->quiet > 1) || r->rank) return;
    va_start(ap, format);
    line(r, r->json ? r->err : r->out, "", format, ap);
    va_end(ap);
}

void dpt_report_error(dpt_report *r, const char *text)
{
    char name[48];

    dpt_report_wipe(r);
    if (r->color && r->world == 1)
        fputs("\033[31mdptrain:\033[0m ", r->err);
    else
        fputs(who(r, name, sizeof name), r->err);
    dpl_print_visible(r->err, text);
    fputc('\n', r->err);
    fflush(r->err);
}

static int terminal_columns(void)
{
    struct winsize w;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    return 80;
}

static void draw(dpt_report *r, const dpt_pass *p, int64_t now)
{
    char buf[2048];

    dpt_format_live(buf, sizeof buf, p, terminal_columns(), r->utf8, r->color,
                    (double)(now - r->started_ns) / 1e9);
    fprintf(r->err, "\r%s\033[K", buf);
    fflush(r->err);
    r->shown = 1;
    r->last_ns = now;
}

void dpt_report_begin(dpt_report *r, const dpt_pass *p)
{
    r->started_ns = dpl_now_ns();
    if (r->live) draw(r, p, r->started_ns);
    if (r->plain && r->interval > 0) r->last_ns = r->started_ns;
}

void dpt_report_tick(dpt_report *r, const dpt_pass *p)
{
    const int64_t now = dpl_now_ns();

    if (r->live && now - r->last_ns >= REDRAW_NS) draw(r, p, now);
}

void dpt_report_step(dpt_report *r, const dpt_pass *p)
{
    char buf[512];
    const int64_t now = dpl_now_ns();
    int due;

    dpt_report_tick(r, p);
    if (!r->plain) return;
    due = r->interval > 0 ? (double)(now - r->last_ns) >= r->interval * 1e9
                          : (p->batch - 1) % (uint64_t)r->print_freq == 0;
    if (!due) return;
    dpt_format_pass(buf, sizeof buf, p);
    fprintf(r->err, "%s\n", buf);
    fflush(r->err);
    r->last_ns = now;
}
