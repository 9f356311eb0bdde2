// Loads of what is read once: they pass by the first cache and leave it to what is read again.
#pragma once
#include "femtile.cuh"

#if !defined(FEMTILE_EMULATED) && defined(__CUDA_ARCH__)
template <u32 BYTES>
struct StreamedLoad;

template <>
struct StreamedLoad<2> {
    static __device__ inline void load(void* to, const void* from) {
        unsigned short v;
        asm("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(from));
        *(unsigned short*)to = v;
    }
};

template <>
struct StreamedLoad<4> {
    static __device__ inline void load(void* to, const void* from) {
        u32 v;
        asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
        *(u32*)to = v;
    }
};

template <>
struct StreamedLoad<8> {
    static __device__ inline void load(void* to, const void* from) {
        u64 v;
        asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(v) : "l"(from));
        *(u64*)to = v;
    }
};

template <>
struct StreamedLoad<16> {
    static __device__ inline void load(void* to, const void* from) {
        u64 v, w;
        asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(v), "=l"(w) : "l"(from));
        ((u64*)to)[0] = v;
        ((u64*)to)[1] = w;
    }
};

// The value at an address, a multiple of its size, which no thread writes while the kernel runs.
template <typename V>
__device__ inline V load_streamed(const V* from) {
    V value;
    StreamedLoad<sizeof(V)>::load(&value, from);
    return value;
}
#else
template <typename V>
__device__ inline V load_streamed(const V* from) {
    return *from;
}
#endif
