// Copies from global to shared memory that are under way while their thread does something else.
//
// A thread asks for copies, commits them as a group, and later waits for all groups but the last few. It then sees
// what it asked for itself; a barrier shows it to the others. Architectures before 8.0 copy at once.
#pragma once
#include "femtile.cuh"

#if defined(FEMTILE_EMULATED)
template <typename V>
__device__ inline void copy_async(V* to, const V* from) {
    femtile_emulate_copy(to, from, sizeof(V));
}

__device__ inline void commit_copies() { femtile_emulate_commit(); }

template <u32 GROUPS_LEFT>
__device__ inline void wait_for_copies() {
    femtile_emulate_wait(GROUPS_LEFT);
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// V has 4, 8 or 16 bytes, and both addresses are multiples of that. Packs of 16 bytes pass by the first cache.
template <typename V>
__device__ inline void copy_async(V* to, const V* from) {
    static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes are copied at once");
    const u32 shared = (u32)__cvta_generic_to_shared(to);
    if (sizeof(V) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(sizeof(V)) : "memory");
    }
}

__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <u32 GROUPS_LEFT>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS_LEFT) : "memory");
}
#else
template <typename V>
__device__ inline void copy_async(V* to, const V* from) {
    *to = *from;
}

__device__ inline void commit_copies() {}

template <u32 GROUPS_LEFT>
__device__ inline void wait_for_copies() {}
#endif

// Asks for the line of 128 bytes at an address to come into the second cache.
__device__ inline void prefetch_line(const void* address) {
#if !defined(FEMTILE_EMULATED) && defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}
