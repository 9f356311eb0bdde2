// Coarse shape functions at the fine nodes along a line of a coarse cell, and the transpose.
//
// A coarse cell owns all its fine nodes but those at its upper ends, which belong to the next cell. Where upper sides are
// free, there is space for these nodes (FAR), and the last cells own them.
#pragma once
#include "femtile.cuh"
#include "cells.cuh"
#include "tables.cuh"

// Nodes along a line of a coarse cell, and of its one or two parts along each axis. Odd row strides in shared memory
// avoid bank conflicts.
const u32 COARSE = K + 1, FAR = FEMTILE_FAR;
const u32 PARTS_X = FEMTILE_PARTS_X, PARTS_Y = FEMTILE_PARTS_Y, PARTS_Z = FEMTILE_PARTS_Z;
const u32 FINE_X = PARTS_X * K + FAR, FINE_Y = PARTS_Y * K + FAR, FINE_Z = PARTS_Z * K + FAR;
const u32 FINE = 2 * K + FAR, ROW = FINE | 1;

template <u32 PARTS>
__device__ inline void to_fine(T (&fine)[PARTS * K + FAR], const T (&coarse)[COARSE]) {
#pragma unroll
    for (u32 i = 0; i < PARTS * K + FAR; ++i) {
        if (PARTS == 1) {
            fine[i] = coarse[i];
            continue;
        }
        T sum = VALUES[i * COARSE] * coarse[0];
#pragma unroll
        for (u32 j = 1; j < COARSE; ++j) sum += VALUES[i * COARSE + j] * coarse[j];
        fine[i] = sum;
    }
}

template <u32 PARTS>
__device__ inline void to_coarse(T (&coarse)[COARSE], const T (&fine)[PARTS * K + FAR]) {
#pragma unroll
    for (u32 j = 0; j < COARSE; ++j) {
        if (PARTS == 1) {
            coarse[j] = j < K + FAR ? fine[j % (K + FAR)] : (T)0;
            continue;
        }
        T sum = VALUES[j] * fine[0];
#pragma unroll
        for (u32 i = 1; i < PARTS * K + FAR; ++i) sum += VALUES[i * COARSE + j] * fine[i];
        coarse[j] = sum;
    }
}

template <u32 PARTS>
__device__ inline void line_to_fine(T* line, u32 stride) {
    T coarse[COARSE], fine[PARTS * K + FAR];
    load_line(coarse, line, stride);
    to_fine<PARTS>(fine, coarse);
    store_line(line, fine, stride);
}

template <u32 PARTS>
__device__ inline void line_to_coarse(T* line, u32 stride) {
    T coarse[COARSE], fine[PARTS * K + FAR];
    load_line(fine, line, stride);
    to_coarse<PARTS>(coarse, fine);
    store_line(line, coarse, stride);
}

// Whether a coarse cell owns the fine nodes at this index along an axis.
template <u32 PARTS>
__device__ inline bool has_node(const Cells& cells, const Cell& cell, u32 axis, u32 node) {
    return FAR == 0 || node < PARTS * K || cell.is_last_and_free(cells, axis);
}
