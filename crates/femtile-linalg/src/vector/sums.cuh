// Sums over vectors: a block of threads takes one or more tiles of TILE entries, the last block adds the sums of all.
//
// The order of additions depends on n and the number of tiles a block takes, which is chosen by n alone: the same
// bits on every GPU.
#pragma once
#include "femtile.cuh"

const u32 TILE = 2048;
const u32 SUM_THREADS = 256;
const u32 TILE_PACKS = TILE / (SUM_THREADS * Pack<T>::N);

// The k-th pack of this thread in a tile.
__device__ inline u64 tile_pack(u64 tile, u32 k) {
    return tile * (TILE / Pack<T>::N) + k * SUM_THREADS + threadIdx.x;
}

// Loads the packs of this thread in a tile, zeros beyond the last whole pack; all loads are under way at once.
__device__ inline void load_tile(Pack<T> (&packs)[TILE_PACKS], const T* array, u64 tile, u64 n) {
#pragma unroll
    for (u32 k = 0; k < TILE_PACKS; ++k) {
        const u64 pack = tile_pack(tile, k);
        if (pack < n / Pack<T>::N) {
            packs[k] = load_pack(array, pack);
        } else {
            packs[k] = Pack<T>();
        }
    }
}

// Stores what load_tile loads.
__device__ inline void store_tile(T* array, const Pack<T> (&packs)[TILE_PACKS], u64 tile, u64 n) {
#pragma unroll
    for (u32 k = 0; k < TILE_PACKS; ++k) {
        const u64 pack = tile_pack(tile, k);
        if (pack < n / Pack<T>::N) store_pack(array, pack, packs[k]);
    }
}

// The entry behind the last whole pack that this thread takes, or n where it takes none.
__device__ inline u64 tail_entry(u64 n) {
    const u64 entry = n / Pack<T>::N * Pack<T>::N + threadIdx.x;
    return blockIdx.x == gridDim.x - 1 && entry < n ? entry : n;
}

// Adds the blocks' sums into `result`; `partials` holds one number per block.
__device__ inline void sum_over_blocks(double* result, double* partials, u32* counter, double of_thread) {
    const double of_block = block_sum(of_thread);
    if (threadIdx.x == 0) partials[blockIdx.x] = of_block;
    if (is_last_block(counter)) {
        const double sum = sum_partials(partials, gridDim.x);
        if (threadIdx.x == 0) *result = sum;
    }
}
