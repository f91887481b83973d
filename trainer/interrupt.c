/* SPDX-License-Identifier: Apache-2.0 */
/* The one piece of process-wide state of the program: which signal asked it to end. */
#include "trainer/interrupt.h"

#include "trainer/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int taken; /* lock-free, so the handler may touch it */

/* What the handler says; the terminal's own ^C or a live line stands before it. */
static const char *heard = "\ndptrain: stopping after this step; again: at once, unsaved\n";

int dpt_interrupt_exit(int sig, int saved)
{
    if (sig == SIGINT) return DPT_EXIT_INTERRUPTED;
    return saved ? DPT_EXIT_STOPPED : DPT_EXIT_FAILED;
}

/* A step may take long; silence would look like a signal that got lost. */
static void on_signal(int sig)
{
    const int was = errno;
    int none = 0;

    if (!atomic_compare_exchange_strong(&taken, &none, sig)) _exit(dpt_interrupt_exit(sig, 0));
    if (write(STDERR_FILENO, heard, strlen(heard)) < 0) {
        /* nobody reads it: nothing to be done about that here */
    }
    errno = was;
}

void dpt_interrupt_install(void)
{
    static const int sigs[] = { SIGINT, SIGTERM, SIGUSR1 };
    struct sigaction sa;

    if (!isatty(STDERR_FILENO) && *heard == '\n') heard++;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    sa.sa_flags = SA_RESTART; /* a save under way must not see EINTR */
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) sigaction(sigs[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is a failed save, with a message */
}

int dpt_interrupt_signal(void)
{
    return atomic_load(&taken);
}

const char *dpt_interrupt_name(int sig)
{
    return sig == SIGINT ? "SIGINT" : sig == SIGTERM ? "SIGTERM" : "SIGUSR1";
}
