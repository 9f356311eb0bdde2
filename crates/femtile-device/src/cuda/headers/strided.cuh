// Strided loads and stores of lines of values.
#pragma once
#include "femtile.cuh"

template <u32 LENGTH, typename Stride>
__device__ inline void load_line(T (&line)[LENGTH], const T* from, Stride stride) {
#pragma unroll
    for (u32 i = 0; i < LENGTH; ++i) line[i] = from[i * stride];
}

template <u32 LENGTH, typename Stride>
__device__ inline void store_line(T* to, const T (&line)[LENGTH], Stride stride) {
#pragma unroll
    for (u32 i = 0; i < LENGTH; ++i) to[i * stride] = line[i];
}
