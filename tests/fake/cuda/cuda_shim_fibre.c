/* SPDX-License-Identifier: Apache-2.0 */
/* Fibres, and what sanitizers must hear of them. Built without any sanitizer: cuda.mk. */
#include "tests/fake/cuda/cuda_shim_fibre.h"

#include "tests/fake/cuda/fake_cudart.h"

#include <stdint.h>
#include <sys/mman.h>

/* From the sanitizers' run times, where there is one. */
void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size)
    __attribute__((weak));
void *__tsan_get_current_fiber(void) __attribute__((weak));
void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));

/* Sanitizers write their reports on the stack of who made the error. Only what is touched costs. */
enum { STACK = 256 << 10, GUARD = 4096, NO_ORDER = 1 };

/* Save the callee's registers and the stack pointer to *from, go on at to. */
void shim_fibre_jump(void **from, void *to);

#if defined(__x86_64__)
__asm__(".text\n"
        ".type shim_fibre_jump, @function\n"
        "shim_fibre_jump:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size shim_fibre_jump, . - shim_fibre_jump\n");
enum { FRAME = 8, RETURN_AT = 6 }; /* words; the one behind the return address aligns the stack */
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type shim_fibre_jump, %function\n"
        "shim_fibre_jump:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size shim_fibre_jump, . - shim_fibre_jump\n");
enum { FRAME = 20, RETURN_AT = 11 };
#else
#    error "write shim_fibre_jump for this processor, or build with CUDA=0"
#endif

static struct {
    void *sp, *tsan, *asan; /* of who enters */
    const void *bottom;     /* its stack */
    size_t size;
    shim_fibre *inside;
    void (*run)(void);
} home;

int shim_fibre_traced(void)
{
    return __tsan_create_fiber != NULL;
}

void shim_fibre_home(void)
{
    if (__tsan_get_current_fiber) home.tsan = __tsan_get_current_fiber();
}

static void first_entry(void)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(NULL, &home.bottom, &home.size);
    home.run();
}

void shim_fibre_begin(shim_fibre *f, void (*run)(void))
{
    uintptr_t *frame;

    if (!f->stack) {
        f->stack = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED || mprotect(f->stack, GUARD, PROT_NONE))
            fake_die("no memory for the stack of a CUDA thread");
        f->stack += GUARD;
        if (__tsan_create_fiber) f->tsan = __tsan_create_fiber(0);
    }
    frame = (uintptr_t *)(f->stack + STACK) - FRAME;
    for (int i = 0; i < FRAME; i++) frame[i] = 0;
    frame[RETURN_AT] = (uintptr_t)first_entry;
    f->sp = frame;
    home.run = run;
}

void shim_fibre_enter(shim_fibre *f)
{
    home.inside = f;
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(f->tsan, NO_ORDER);
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&home.asan, f->stack, STACK);
    shim_fibre_jump(&home.sp, f->sp);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(home.asan, NULL, NULL);
}

void shim_fibre_leave(int for_good)
{
    shim_fibre *const f = home.inside;

    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(home.tsan, NO_ORDER);
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(for_good ? NULL : &f->asan, home.bottom, home.size);
    shim_fibre_jump(&f->sp, home.sp);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(f->asan, &home.bottom, &home.size);
}
