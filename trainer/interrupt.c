/* SPDX-License-Identifier: Apache-2.0 */
/* The one piece of process-wide state of the program: which signal asked it to end. */
#include "trainer/interrupt.h"

#include "trainer/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Only touched by __atomic_ built-ins, which take no lock on an int: the handler may use them, and
 * what computes reads it as the word that cancels it. */
static int taken;

/* What the handler says; the terminal's own ^C or a live line stands before it. */
static const char *heard = "\ndptrain: stopping; again: at once, without saving\n";

int dpt_interrupt_exit(int sig, int saved)
{
    if (sig == SIGINT) return DPT_EXIT_INTERRUPTED;
    return saved ? DPT_EXIT_STOPPED : DPT_EXIT_FAILED;
}

/* Whether this is the first signal. A closed terminal sends SIGHUP once from the system and once from
 * the shell, and a service manager SIGHUP along with SIGTERM, so it never is the second one, nor does
 * it make the next one that. */
static int take(int sig)
{
    int before = 0;

    if (__atomic_compare_exchange_n(&taken, &before, sig, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 1;
    if (sig == SIGHUP) return 0;
    if (before != SIGHUP ||
        !__atomic_compare_exchange_n(&taken, &before, sig, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        _exit(dpt_interrupt_exit(sig, 0));
    return 0;
}

/* Ending takes a moment; silence would look like a signal that got lost. */
static void on_signal(int sig)
{
    const int was = errno;

    if (!take(sig)) return;
    if (write(STDERR_FILENO, heard, strlen(heard)) < 0) {
        /* nobody reads it: nothing to be done about that here */
    }
    errno = was;
}

void dpt_interrupt_install(void)
{
    static const int sigs[] = { SIGINT, SIGTERM, SIGUSR1 };
    struct sigaction sa, before;

    if (!isatty(STDERR_FILENO) && *heard == '\n') heard++;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    sa.sa_flags = SA_RESTART; /* a save under way must not see EINTR */
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) sigaction(sigs[i], &sa, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* nohup stays nohup */
        sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is a failed save, with a message */
}

int dpt_interrupt_signal(void)
{
    return __atomic_load_n(&taken, __ATOMIC_SEQ_CST);
}

const int *dpt_interrupt_cancel(void)
{
    return &taken;
}

const char *dpt_interrupt_name(int sig)
{
    return sig == SIGINT    ? "SIGINT"
           : sig == SIGTERM ? "SIGTERM"
           : sig == SIGHUP  ? "SIGHUP"
                            : "SIGUSR1";
}

int dpt_interrupt_fail(dpl_text *why)
{
    const int sig = dpt_interrupt_signal();

    return dpl_fail(why, dpt_interrupt_exit(sig, 0), "stopped by %s", dpt_interrupt_name(sig));
}
