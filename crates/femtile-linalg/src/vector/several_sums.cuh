// Several sums over vectors in one pass, whose rows the threads of a grid take in turn.
//
// The order of additions depends on the number of blocks alone, which depends on that of rows: the same bits on every GPU.
#pragma once
#include "sums.cuh"

// The first row of this thread, and the rows from one to its next.
__device__ inline u64 first_row() { return (u64)blockIdx.x * SUM_THREADS + threadIdx.x; }
__device__ inline u64 row_stride() { return (u64)gridDim.x * SUM_THREADS; }

// Sums of one pass, at most; warps of a block.
const u32 MOST_SUMS = 64;
const u32 WARPS = SUM_THREADS / WARP;

// Room for the sums of all warps, those of one sum next to each other.
__device__ inline double* sums_of_warps() {
    FEMTILE_SHARED double sums[MOST_SUMS * WARPS];
    return sums;
}

// Adds N numbers of each thread into as many of `sums`; `partials` holds N numbers per block, `counter` is 0 before and
// after.
template <u32 N>
__device__ inline void sums_over_blocks(double* sums, double* partials, u32* counter, const double (&of_thread)[N]) {
    static_assert(N <= MOST_SUMS, "there is no room for so many sums");
    double* const of_warps = sums_of_warps();
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (u32 s = 0; s < N; ++s) {
        const double sum = warp_sum(of_thread[s]);
        if (lane == 0) of_warps[s * WARPS + warp] = sum;
    }
    __syncthreads();
    if (threadIdx.x < N) {
        double sum = 0.0;
        for (u32 w = 0; w < WARPS; ++w) sum += of_warps[threadIdx.x * WARPS + w];
        partials[threadIdx.x * gridDim.x + blockIdx.x] = sum;
    }
    // The fence of thread 0 is then one for all of these.
    __syncthreads();
    if (!is_last_block(counter)) return;
    for (u32 s = warp; s < N; s += WARPS) {
        double sum = 0.0;
        for (u32 i = lane; i < gridDim.x; i += WARP) sum += partials[s * gridDim.x + i];
        sum = warp_sum(sum);
        if (lane == 0) sums[s] = sum;
    }
}
