// Running sums of counts, in tiles: y_i = x_0 + … + x_(i − 1).
#include "femtile.cuh"

// Numbers that a block adds up one after the other.
const u32 TILE = FEMTILE_TILE;

// Sum of the numbers of the threads before this one; `total` is that of the whole block.
//
// All threads call it. It may be called again at once: its memory is free when it returns.
__device__ inline u64 sum_before(u64 number, u64& total) {
    FEMTILE_SHARED u64 of_warp[WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 sum = number;
    for (u32 step = 1; step < WARP; step *= 2) {
        const u64 before = __shfl_up_sync(FULL_WARP, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == WARP - 1) of_warp[warp] = sum;
    __syncthreads();
    sum -= number;
    total = 0;
    for (u32 i = 0; i < blockDim.x / WARP; ++i) {
        if (i < warp) sum += of_warp[i];
        total += of_warp[i];
    }
    __syncthreads();
    return sum;
}

// sums[i] = numbers[begin] + … + numbers[i − 1] for the places from `begin` to `end`; returns the sum of all.
template <typename Sum, typename Number>
__device__ inline u64 scan(Sum* sums, const Number* numbers, u64 begin, u64 end) {
    u64 sum = 0;
    for (u64 first = begin; first < end; first += blockDim.x) {
        const u64 i = first + threadIdx.x;
        u64 total;
        const u64 before = sum_before(i < end ? numbers[i] : 0, total);
        if (i < end) sums[i] = (Sum)(sum + before);
        sum += total;
    }
    return sum;
}

// Where each number begins among those of its tile, and the sums of the tiles. A block takes a tile.
extern "C" __global__ void scan_tiles(u32* starts, u64* tiles, const u32* numbers, u64 n) {
    const u64 begin = blockIdx.x * (u64)TILE;
    const u64 sum = scan(starts, numbers, begin, begin + TILE < n ? begin + TILE : n);
    if (threadIdx.x == 0) tiles[blockIdx.x] = sum;
}

// Where each tile begins, and the sum of all. One block.
extern "C" __global__ void scan_sums(u64* tiles, u64* total, u64 n_tiles) {
    const u64 sum = scan(tiles, tiles, 0, n_tiles);
    if (threadIdx.x == 0) *total = sum;
}

// Where each number begins among all; the last one is the end.
extern "C" __global__ void scan_starts(u32* starts, const u64* tiles, const u64* total, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) starts[i] += (u32)tiles[i / TILE];
    if (i == n) starts[i] = (u32)*total;
}
