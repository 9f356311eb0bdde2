// Sums over vectors: a block of threads takes BLOCK entries, the last block adds the blocks' sums.
//
// The order of additions depends on n alone: the same bits on every GPU.
#pragma once
#include "femtile.cuh"

const u32 BLOCK = 4096;
const u32 SUM_THREADS = 256;
const u32 BLOCK_PACKS = BLOCK / (SUM_THREADS * Pack<T>::N);

// Whether all entries of this block exist, so that it may take whole packs.
__device__ inline bool block_is_whole(u64 n) { return (blockIdx.x + 1) * (u64)BLOCK <= n; }

// The k-th pack of this thread in its block.
__device__ inline u64 block_pack(u32 k) {
    return blockIdx.x * (u64)(BLOCK / Pack<T>::N) + k * SUM_THREADS + threadIdx.x;
}

// The first entry of this thread in a block that is not whole.
__device__ inline u64 block_entry() { return blockIdx.x * (u64)BLOCK + threadIdx.x; }

// Adds the blocks' sums into `result`; `partials` has room for one number a block.
__device__ inline void sum_over_blocks(double* result, double* partials, u32* counter, double of_thread) {
    const double of_block = block_sum(of_thread);
    if (threadIdx.x == 0) partials[blockIdx.x] = of_block;
    if (is_last_block(counter)) {
        const double sum = sum_partials(partials, gridDim.x);
        if (threadIdx.x == 0) *result = sum;
    }
}
