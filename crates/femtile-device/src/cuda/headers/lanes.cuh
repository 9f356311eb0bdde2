// Rows of a sparse matrix, each of which a few neighbouring lanes of a warp take together.
#pragma once
#include "femtile.cuh"

// Lanes of a row, a power of two up to a warp.
const u32 LANES = FEMTILE_LANES;
// Stands for no column, no part.
const u32 NONE = 0xffffffffu;

// A matrix in compressed sparse rows.
struct Rows {
    const u32* offsets;
    const u32* columns;
    const T* values;
    u64 n;
};

// The entries of a row.
struct Range {
    u32 begin, end;
};

// None for a row beyond the last one, so that its lanes may take part in what the warp does.
__device__ inline Range entries(const u32* offsets, u64 row, u64 n) {
    Range range = {0, 0};
    if (row < n) {
        range.begin = offsets[row];
        range.end = offsets[row + 1];
    }
    return range;
}

__device__ inline u64 thread_of_grid() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ inline u64 row_of_lanes() { return thread_of_grid() / LANES; }
__device__ inline u32 lane_of_row() { return threadIdx.x % LANES; }

// The sum over the lanes of a row, known to all of them. Full warps call it.
template <typename V>
__device__ inline V lanes_sum(V value) {
    for (u32 half = LANES / 2; half > 0; half /= 2) value += __shfl_xor_sync(FULL_WARP, value, (int)half);
    return value;
}

// The largest value of the lanes of a row, known to all of them. Full warps call it.
template <typename V>
__device__ inline V lanes_max(V value) {
    for (u32 half = LANES / 2; half > 0; half /= 2) {
        const V other = __shfl_xor_sync(FULL_WARP, value, (int)half);
        value = value < other ? other : value;
    }
    return value;
}

// 64 bits that look random, from a number.
__device__ inline u64 mixed(u64 i) {
    u64 bits = (i + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9ull;
    return bits;
}
