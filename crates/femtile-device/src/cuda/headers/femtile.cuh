// What kernels share: types, packs of 16 bytes, sums over warps and blocks in a fixed order.
//
// Includes nothing of CUDA: the same text compiles with NVRTC and, behind the emulator's own prelude, with the
// C++ compiler of the host. A block has at most 1024 threads in a line.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
#ifdef FEMTILE_T
typedef FEMTILE_T T;
#endif

#ifndef FEMTILE_EMULATED
#define FEMTILE_SHARED __shared__
// Dynamic shared memory as an array: FEMTILE_DYNAMIC_SHARED(double, tile); declares `double* tile`.
#define FEMTILE_DYNAMIC_SHARED(type, name)                      \
    extern __shared__ __align__(16) unsigned char femtile_dynamic_shared[]; \
    type* name = reinterpret_cast<type*>(femtile_dynamic_shared)
#endif

const u32 WARP = 32;
const u32 FULL_WARP = 0xffffffffu;

// 16 bytes of an array, which one instruction loads or stores; the address is a multiple of 16.
template <typename V>
struct alignas(16) Pack {
    static const u32 N = 16 / sizeof(V);
    V value[N];
};

template <typename V>
__device__ inline Pack<V> load_pack(const V* array, u64 pack) {
    return reinterpret_cast<const Pack<V>*>(array)[pack];
}

template <typename V>
__device__ inline void store_pack(V* array, u64 pack, const Pack<V>& values) {
    reinterpret_cast<Pack<V>*>(array)[pack] = values;
}

// Sum over the lanes of a full warp, known to lane 0: 0+16, 1+17, …, then 0+8, ….
__device__ inline double warp_sum(double value) {
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        value += __shfl_down_sync(FULL_WARP, value, half);
    }
    return value;
}

// Sum over the threads of a block (a multiple of 32), known to thread 0: warps first, then their sums.
//
// All threads call it. It may be called again at once: its memory is free when it returns.
__device__ inline double block_sum(double value) {
    FEMTILE_SHARED double of_warp[WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    value = warp_sum(value);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_sum(lane < blockDim.x / WARP ? of_warp[lane] : 0.0);
    }
    __syncthreads();
    return value;
}

// Whether this block is the last of n to call it with the same counter; what the other blocks wrote before is then
// visible.
//
// All threads call it, after their block's results are written by thread 0. `counter` is 0 before the first call and
// again after the last.
__device__ inline bool is_last_of(u32* counter, u32 n) {
    FEMTILE_SHARED bool is_last;
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(counter, 1u) == n - 1;
        if (is_last) *counter = 0;
    }
    __syncthreads();
    return is_last;
}

// Whether this block is the last of the grid to call it.
__device__ inline bool is_last_block(u32* counter) { return is_last_of(counter, gridDim.x); }

// Sum of the partial sums of all blocks in a fixed order, known to thread 0; for the last block of a grid.
__device__ inline double sum_partials(const double* partials, u32 n) {
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += partials[i];
    return block_sum(sum);
}
