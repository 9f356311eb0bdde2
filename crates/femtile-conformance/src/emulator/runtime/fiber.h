// Threads of a block as fibers: each has a stack, and one runs at a time.
//
// A fiber takes a stack when it first runs and gives it back when its kernel returns, so that a kernel without
// barriers runs all its threads on one stack, which stays in the cache.
#pragma once
#include <sys/mman.h>

#include "interface.h"

const u64 STACK_BYTES = 256 << 10, GUARD_BYTES = 4 << 10;
const u32 MAX_THREADS = 1024;

#if defined(__x86_64__) && !defined(FEMTILE_UCONTEXT)
// Keeps what a function must keep on the stack it leaves; the rest the compiler has saved around the call.
extern "C" void femtile_switch(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .p2align 4
    .hidden femtile_switch
    .globl femtile_switch
    .type femtile_switch, @function
femtile_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size femtile_switch, . - femtile_switch
)");

struct Context {
    void* stack_pointer;

    // At the entry of a function the stack is 8 bytes off a multiple of 16, as after a call.
    void prepare(u8* top, void (*entry)()) {
        void** place = reinterpret_cast<void**>(reinterpret_cast<Address>(top) & ~Address(15)) - 2;
        *place = reinterpret_cast<void*>(entry);
        stack_pointer = place - 6;
    }
};

static inline void change(Context& from, Context& to) { femtile_switch(&from.stack_pointer, to.stack_pointer); }
#else
#include <ucontext.h>

struct Context {
    ucontext_t registers;

    void prepare(u8* top, void (*entry)()) {
        getcontext(&registers);
        registers.uc_stack.ss_sp = top - STACK_BYTES / 2;
        registers.uc_stack.ss_size = STACK_BYTES / 2;
        registers.uc_link = nullptr;
        makecontext(&registers, entry, 0);
    }
};

static inline void change(Context& from, Context& to) { swapcontext(&from.registers, &to.registers); }
#endif

struct Stacks {
    u8* base = nullptr;
    u32 free[MAX_THREADS];
    u32 n_free = 0, n_guarded = 0;

    static const u64 BYTES = MAX_THREADS * STACK_BYTES;

    bool reserve() {
        if (base != nullptr) return true;
        void* map = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) return false;
        base = static_cast<u8*>(map);
        return true;
    }
    void give_all_back() {
        for (n_free = 0; n_free < MAX_THREADS; ++n_free) free[n_free] = MAX_THREADS - 1 - n_free;
    }
    // Stacks are guarded when first taken: every guard is a mapping, and a process may have some 65,000 of those.
    u32 take() {
        const u32 stack = free[--n_free];
        for (; n_guarded <= stack; ++n_guarded) mprotect(base + n_guarded * STACK_BYTES, GUARD_BYTES, PROT_NONE);
        return stack;
    }
    void give_back(u32 stack) { free[n_free++] = stack; }
    // Tops lie at different places of their pages, so that they do not all fall on one line of the cache.
    u8* top(u32 stack) const { return base + (stack + 1) * STACK_BYTES - (stack % 61) * 320 - 64; }
    ~Stacks() {
        if (base != nullptr) munmap(base, BYTES);
    }
};
