/* SPDX-License-Identifier: Apache-2.0 */
/* The text of progress lines: pure functions of a pass. */
#include "trainer/report.h"

#include <math.h>
#include <string.h>

void dpt_pass_step(dpt_pass *p, const dpt_sums *sums, int planned, double time, double wait,
                   double compute)
{
    const double now = time > 0 ? (double)sums->n / time : 0;

    p->batch++;
    p->images += (uint64_t)planned;
    p->last = *sums;
    p->total.loss += sums->loss;
    p->total.top1 += sums->top1;
    p->total.top5 += sums->top5;
    p->total.n += sums->n;
    p->last_time = time;
    p->last_wait = wait;
    p->time += time;
    p->wait += wait;
    p->compute += compute;
    p->rate = p->steps ? 0.9 * p->rate + 0.1 * now : now;
    p->steps++;
    p->images_here += sums->n;
}

double dpt_pass_rate(const dpt_pass *p)
{
    return p->time > 0 ? (double)p->images_here / p->time : 0;
}

double dpt_pass_wait_share(const dpt_pass *p)
{
    return p->time > 0 ? p->wait / p->time : 0;
}

double dpt_mean_loss(const dpt_sums *s)
{
    return s->n ? s->loss / (double)s->n : 0;
}

double dpt_percent(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

const char *dpt_format_count(char buf[32], uint64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = buf;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}

const char *dpt_format_duration(char buf[32], double seconds)
{
    const long s = seconds > 0 && seconds < 3e9 ? lround(seconds) : 0;

    if (s >= 3600)
        snprintf(buf, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, 32, "%ld:%02ld", s / 60, s % 60);
    return buf;
}

const char *dpt_format_seconds(char buf[32], double seconds)
{
    if (seconds >= 59.95) return dpt_format_duration(buf, seconds);
    snprintf(buf, 32, "%.1f s", seconds);
    return buf;
}

const char *dpt_format_bytes(char buf[32], double bytes)
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    int u = 0;

    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, 32, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return buf;
}

/* Digits of the number of batches, so that the counter keeps its width. */
static int width_of(uint64_t n)
{
    return snprintf(NULL, 0, "%llu", (unsigned long long)n);
}

int dpt_format_pass(char *buf, size_t len, const dpt_pass *p)
{
    const double steps = p->steps ? (double)p->steps : 1;
    const int w = width_of(p->batches);
    const unsigned long long i = p->batch, all = p->batches;
    const double loss = dpt_mean_loss(&p->last), avg = dpt_mean_loss(&p->total);
    const double one = dpt_percent(p->last.top1, p->last.n);
    const double one_avg = dpt_percent(p->total.top1, p->total.n);
    const double five = dpt_percent(p->last.top5, p->last.n);
    const double five_avg = dpt_percent(p->total.top5, p->total.n);

    if (p->kind == DPT_PASS_TEST)
        return snprintf(buf, len,
                        "Test: [%*llu/%llu]\tTime %6.3f (%6.3f)\tLoss %.4e (%.4e)\t"
                        "Acc@1 %6.2f (%6.2f)\tAcc@5 %6.2f (%6.2f)",
                        w, i, all, p->last_time, p->time / steps, loss, avg, one, one_avg, five,
                        five_avg);
    if (p->kind == DPT_PASS_SIM)
        return snprintf(buf, len,
                        "Epoch: [%lld][%*llu/%llu]\tTime %6.3f (%6.3f)\tData %6.3f (%6.3f)\t"
                        "%.0f img/s",
                        (long long)p->epoch, w, i, all, p->last_time, p->time / steps, p->last_wait,
                        p->wait / steps, dpt_pass_rate(p));
    return snprintf(buf, len,
                    "Epoch: [%lld][%*llu/%llu]\tTime %6.3f (%6.3f)\tData %6.3f (%6.3f)\t"
                    "Loss %.4e (%.4e)\tAcc@1 %6.2f (%6.2f)\tAcc@5 %6.2f (%6.2f)\tLR %.2e\t"
                    "%.0f img/s",
                    (long long)p->epoch, w, i, all, p->last_time, p->time / steps, p->last_wait,
                    p->wait / steps, loss, avg, one, one_avg, five, five_avg, p->lr,
                    dpt_pass_rate(p));
}

/* `cells` columns, the share `done` of them filled. */
static void format_bar(char *buf, size_t len, int cells, double done, int utf8, int color)
{
    const char *full = utf8 ? "\u2501" : "#", *rest = utf8 ? "\u2500" : ".";
    const int filled = (int)floor(done * cells + 1e-9);
    size_t at = 0;

    *buf = '\0';
    for (int i = 0; i < cells && at + 16 < len; i++) {
        const char *tint = !color             ? ""
                           : i == 0 && filled ? "\033[32m"
                           : i == filled      ? "\033[0m"
                                              : "";
        at += (size_t)snprintf(buf + at, len - at, "%s%s", tint, i < filled ? full : rest);
    }
    if (color && at + 8 < len) snprintf(buf + at, len - at, "\033[0m");
}

void dpt_format_live(char *buf, size_t len, const dpt_pass *p, int columns, int utf8, int color,
                     double elapsed)
{
    char left[64], right[256], bar[1024] = "", eta[48] = "", a[32], b[32], c[32], loss[32] = "";
    const double done = p->images_all ? (double)p->images / (double)p->images_all : 0;
    const char *what = p->kind == DPT_PASS_TEST ? "validate" : "epoch";
    int room, at;

    if (elapsed >= 5 && p->rate > 0 && p->images < p->images_all)
        snprintf(eta, sizeof eta, "  eta %s",
                 dpt_format_duration(c, (double)(p->images_all - p->images) / p->rate));
    if (p->kind != DPT_PASS_SIM && p->total.n)
        snprintf(loss, sizeof loss, "  loss %.4f", dpt_mean_loss(&p->total));
    at = snprintf(left, sizeof left, "%s %lld/%lld", what, (long long)p->epoch + 1,
                  (long long)p->epochs);
    at += snprintf(right, sizeof right, "%s/%s  %.1f%%  %.0f img/s%s  wait %.0f%%%s",
                   dpt_format_count(a, p->images), dpt_format_count(b, p->images_all), 100 * done,
                   p->rate, loss, 100 * dpt_pass_wait_share(p), eta);
    room = columns - 1 - at - 2; /* a full last column would wrap */
    if (room >= 6) format_bar(bar, sizeof bar, room > 40 ? 40 : room, done, utf8, color);
    if (*bar)
        snprintf(buf, len, "%s %s %s", left, bar, right);
    else
        snprintf(buf, len, "%s %s", left, right);
    if (!*bar && columns > 0 && (size_t)columns <= strlen(buf)) buf[columns - 1] = '\0';
}
