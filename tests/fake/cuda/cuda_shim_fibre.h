/* SPDX-License-Identifier: Apache-2.0 */
/* Fibres: stacks of their own that one thread of the system enters and leaves. For the CUDA threads of
 * a block. AddressSanitizer and ThreadSanitizer are told of every switch; to the latter a switch is
 * no order. One block runs at a time in the whole process, so the state behind this is global. */
#ifndef TESTS_FAKE_CUDA_CUDA_SHIM_FIBRE_H
#define TESTS_FAKE_CUDA_CUDA_SHIM_FIBRE_H

typedef struct shim_fibre {
    void *sp;    /* where it was left */
    char *stack; /* NULL = not used yet */
    void *asan, *tsan;
} shim_fibre;

/** The thread that calls is where fibres are entered from, until the next call of this. */
void shim_fibre_home(void);
/** Let f begin with run() when it is entered next. run() must end with shim_fibre_leave(1). */
void shim_fibre_begin(shim_fibre *f, void (*run)(void));
/** Go on in f until it leaves. */
void shim_fibre_enter(shim_fibre *f);
/** Back to who entered; returns when entered again. for_good: it never is. */
void shim_fibre_leave(int for_good);
/** Is this under ThreadSanitizer? */
int shim_fibre_traced(void);

#endif
