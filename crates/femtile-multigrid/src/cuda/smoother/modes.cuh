// Lines of nodes of two adjacent cells, and their modes: the eigenvectors that diagonalize mass and stiffness of the
// inner nodes.
//
// Both cells have the same width, so modes are even or odd, even ones first. Even and odd parts of a line halve the
// multiplications. The modes of a line with ends are those of its component that is mass-orthogonal to the ends.
#pragma once
#include "femtile.cuh"
#include "strided.cuh"
#include "tables.cuh"

// Inner nodes of a line, and all its nodes; even and odd modes.
const u32 K = FEMTILE_DEGREE, N = 2 * K - 1, M = 2 * K + 1, EVEN = K, ODD = K - 1, MIDDLE = K - 1;

// S^T of integrals over the inner nodes.
__device__ inline void test_modes(T (&line)[N]) {
    T sums[EVEN], differences[EVEN];
#pragma unroll
    for (u32 a = 0; a < ODD; ++a) {
        sums[a] = line[a] + line[N - 1 - a];
        differences[a] = line[a] - line[N - 1 - a];
    }
    sums[MIDDLE] = line[MIDDLE];
#pragma unroll
    for (u32 e = 0; e < EVEN; ++e) {
        T sum = S_EVEN[e] * sums[0];
#pragma unroll
        for (u32 a = 1; a < EVEN; ++a) sum += S_EVEN[a * EVEN + e] * sums[a];
        line[e] = sum;
    }
#pragma unroll
    for (u32 o = 0; o < ODD; ++o) {
        T sum = S_ODD[o] * differences[0];
#pragma unroll
        for (u32 a = 1; a < ODD; ++a) sum += S_ODD[a * ODD + o] * differences[a];
        line[EVEN + o] = sum;
    }
}

// Modes of nodal values, ends included: P = S^T M.
__device__ inline void to_modes(T (&modes)[N], const T (&line)[M]) {
    T sums[EVEN + 1], differences[EVEN];
#pragma unroll
    for (u32 a = 0; a < EVEN; ++a) {
        sums[a] = line[a] + line[M - 1 - a];
        differences[a] = line[a] - line[M - 1 - a];
    }
    sums[EVEN] = line[EVEN];
#pragma unroll
    for (u32 e = 0; e < EVEN; ++e) {
        T sum = P_EVEN[e * (EVEN + 1)] * sums[0];
#pragma unroll
        for (u32 a = 1; a <= EVEN; ++a) sum += P_EVEN[e * (EVEN + 1) + a] * sums[a];
        modes[e] = sum;
    }
#pragma unroll
    for (u32 o = 0; o < ODD; ++o) {
        T sum = P_ODD[o * EVEN] * differences[0];
#pragma unroll
        for (u32 a = 1; a < EVEN; ++a) sum += P_ODD[o * EVEN + a] * differences[a];
        modes[EVEN + o] = sum;
    }
}

// Inner nodal values from modes and from the sum and difference of the end values.
__device__ inline void to_nodes(T (&line)[N], T sum_of_ends, T difference_of_ends) {
    T even[EVEN], odd[EVEN];
#pragma unroll
    for (u32 a = 0; a < EVEN; ++a) {
        even[a] = D_EVEN[a] * sum_of_ends;
#pragma unroll
        for (u32 e = 0; e < EVEN; ++e) even[a] += S_EVEN[a * EVEN + e] * line[e];
    }
#pragma unroll
    for (u32 a = 0; a < ODD; ++a) {
        odd[a] = D_ODD[a] * difference_of_ends;
#pragma unroll
        for (u32 o = 0; o < ODD; ++o) odd[a] += S_ODD[a * ODD + o] * line[EVEN + o];
    }
#pragma unroll
    for (u32 a = 0; a < ODD; ++a) {
        line[a] = even[a] + odd[a];
        line[N - 1 - a] = even[a] - odd[a];
    }
    line[MIDDLE] = even[MIDDLE];
}

// The middle nodal value, to which odd modes do not contribute; `stride` between modes.
__device__ inline T middle_node(const T* modes, u32 stride, T sum_of_ends) {
    T value = D_EVEN[MIDDLE] * sum_of_ends;
#pragma unroll
    for (u32 e = 0; e < EVEN; ++e) value += S_EVEN[MIDDLE * EVEN + e] * modes[e * stride];
    return value;
}
