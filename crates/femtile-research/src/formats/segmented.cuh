// Sums over runs of neighbouring entries, one run a row, by a block of threads that takes a tile of entries.
//
// A thread takes PER entries in a row. The last entry of each matrix row bears that row's number, others NO_ROW; the
// thread that meets it has the row's sum as far as the row lies in the tile. What is open at the end of a tile goes
// to an array of carries, one a tile, which the kernel of carry.cu sums in the same manner. There are no atomics: the
// order of additions depends on the matrix alone.
#pragma once
#include "femtile.cuh"

const u32 NO_ROW = 0xffffffffu;
const u32 SEGMENT_THREADS = 256;
const u32 PER_THREAD = 8;
const u32 TILE = SEGMENT_THREADS * PER_THREAD;

// Where an entry of a tile is staged: one free place behind the entries of each thread keeps banks apart.
__device__ inline u32 staged(u32 entry) { return entry + entry / PER_THREAD; }
const u32 STAGED = TILE + SEGMENT_THREADS + 1;

// The open sum at the right end of a stretch of entries: the sum behind the last end of a row in it.
struct OpenSum {
    T sum;
    u32 has_end;

    __device__ OpenSum behind(const OpenSum& left) const {
        OpenSum both;
        both.sum = has_end ? sum : left.sum + sum;
        both.has_end = has_end | left.has_end;
        return both;
    }
};

__device__ inline OpenSum from_lane_below(const OpenSum& open, u32 distance) {
    OpenSum left;
    left.sum = __shfl_up_sync(FULL_WARP, open.sum, distance);
    left.has_end = __shfl_up_sync(FULL_WARP, open.has_end, distance);
    return left;
}

// What is open before the entries of this thread, from what each thread leaves open; `at_end` is what the block
// leaves open. All threads call it, once in a kernel.
__device__ inline T open_before(const OpenSum& own, T& at_end) {
    FEMTILE_SHARED OpenSum of_warp[SEGMENT_THREADS / WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    OpenSum through = own;
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const OpenSum left = from_lane_below(through, distance);
        if (lane >= distance) through = through.behind(left);
    }
    OpenSum before = from_lane_below(through, 1);
    if (lane == 0) before = OpenSum();
    if (lane == WARP - 1) of_warp[warp] = through;
    __syncthreads();
    OpenSum warps = OpenSum(), left = OpenSum();
#pragma unroll
    for (u32 w = 0; w < SEGMENT_THREADS / WARP; ++w) {
        if (w == warp) left = warps;
        warps = of_warp[w].behind(warps);
    }
    at_end = warps.sum;
    return before.behind(left).sum;
}

// Writes the sums of the rows that end in this tile, or adds them to y; gives the sum that the block leaves open.
template <bool ADD, u32 PER>
__device__ inline T sum_rows(T* y, const u32 (&end_of)[PER], const T (&term)[PER]) {
    OpenSum own = OpenSum();
#pragma unroll
    for (u32 k = 0; k < PER; ++k) {
        own.sum += term[k];
        if (end_of[k] != NO_ROW) {
            own.sum = 0;
            own.has_end = 1;
        }
    }
    T at_end;
    T sum = open_before(own, at_end);
#pragma unroll
    for (u32 k = 0; k < PER; ++k) {
        sum += term[k];
        if (end_of[k] != NO_ROW) {
            y[end_of[k]] = ADD ? y[end_of[k]] + sum : sum;
            sum = 0;
        }
    }
    return at_end;
}

// Entries of a tile as a thread loads them, side by side with its neighbours.
struct Loaded {
    u32 column[PER_THREAD];
    T value[PER_THREAD];

    // All loads are under way at once, and pass through caches that x has a better use for; zeros beyond the end.
    __device__ void load(const u32* columns, const T* values, u64 tile, u64 n) {
#pragma unroll
        for (u32 k = 0; k < PER_THREAD; ++k) {
            const u64 entry = tile + k * SEGMENT_THREADS + threadIdx.x;
            column[k] = entry < n ? __ldcs(columns + entry) : 0;
            value[k] = entry < n ? __ldcs(values + entry) : 0;
        }
    }

    __device__ void stage_products(T* products, const T* x) const {
#pragma unroll
        for (u32 k = 0; k < PER_THREAD; ++k) {
            products[staged(k * SEGMENT_THREADS + threadIdx.x)] = value[k] * x[column[k]];
        }
    }
};
