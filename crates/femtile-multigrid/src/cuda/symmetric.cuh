// Products of mass and stiffness of a cell with lines of its nodes.
//
// Both matrices are symmetric under reflection, so even and odd parts of a line halve the multiplications.
#pragma once
#include "femtile.cuh"
#include "cells.cuh"
#include "tables.cuh"

// Nodes of a line, and sizes of its even and odd parts.
const u32 N = K + 1, EVEN = (N + 1) / 2, ODD = N / 2;

// Even and odd parts of a line.
struct Halves {
    T sums[EVEN], differences[EVEN];

    __device__ inline Halves(const T* line, u32 stride) {
#pragma unroll
        for (u32 i = 0; i < ODD; ++i) {
            const T low = line[i * stride], high = line[(N - 1 - i) * stride];
            sums[i] = low + high;
            differences[i] = low - high;
        }
        if (EVEN > ODD) sums[EVEN - 1] = line[(EVEN - 1) * stride];
    }
};

struct Mass {
    static __device__ inline T even(u32 i, u32 j) { return MASS_EVEN[i * EVEN + j]; }
    static __device__ inline T odd(u32 i, u32 j) { return MASS_ODD[i * ODD + j]; }
};

struct Stiffness {
    static __device__ inline T even(u32 i, u32 j) { return STIFFNESS_EVEN[i * EVEN + j]; }
    static __device__ inline T odd(u32 i, u32 j) { return STIFFNESS_ODD[i * ODD + j]; }
};

// Adds a multiple of a matrix times a line.
template <typename Matrix>
__device__ inline void add_product(T (&to)[N], const Halves& line, T scale) {
#pragma unroll
    for (u32 i = 0; i < EVEN; ++i) {
        T even = Matrix::even(i, 0) * line.sums[0], odd = 0;
#pragma unroll
        for (u32 j = 1; j < EVEN; ++j) even += Matrix::even(i, j) * line.sums[j];
        if (i < ODD) {
#pragma unroll
            for (u32 j = 0; j < ODD; ++j) odd += Matrix::odd(i, j) * line.differences[j];
        }
        to[i] += scale * (even + odd);
        if (i < ODD) to[N - 1 - i] += scale * (even - odd);
    }
}
