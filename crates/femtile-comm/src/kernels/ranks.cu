// Vectors of a rank: values for others, values of others, and rows that these complete.
#include "femtile.cuh"
#include "hook.cuh"

// out = x at some places, or from one on. One thread per value.
extern "C" __global__ void ranks_pick(T* out, const T* x, const u32* places, u64 first, u64 n, u64 n_x) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u64 at = places ? places[i] : first + i;
    if (at < n_x) out[i] = x[at];
}

// y = values, from an entry on. One thread per value.
extern "C" __global__ void ranks_put(T* y, const T* values, u64 first, u64 n, u64 n_y) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n && first + i < n_y) y[first + i] = values[i];
}

// y += values at some places, each of them once, or from one on. One thread per value.
extern "C" __global__ void ranks_add(T* y, const T* values, const u32* places, u64 first, u64 n, u64 n_y) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u64 at = places ? places[i] : first + i;
    if (at < n_y) y[at] += values[i];
}

// The values of a part, of which `numbers` says the places among the owned ones and ghosts, or which are these in their order;
// zeros where there are no ghosts. One thread per value.
extern "C" __global__ void ranks_spread(
    T* part, const T* owned, const T* ghosts, const u32* numbers, u64 n_owned, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u64 number = numbers ? numbers[i] : i;
    part[i] = number < n_owned ? owned[number] : ghosts && number < n ? ghosts[number - n_owned] : (T)0;
}

// out = values at addresses, which may be on other GPUs; these are written before and not meanwhile. One thread per value.
extern "C" __global__ void ranks_pull(T* out, const u64* addresses, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) out[i] = *(const volatile T*)addresses[i];
}

// y += values at addresses, at some places, each of them once. One thread per value.
extern "C" __global__ void ranks_pull_add(T* y, const u64* addresses, const u32* places, u64 n, u64 n_y) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n && places[i] < n_y) y[places[i]] += *(const volatile T*)addresses[i];
}

// Sums of n numbers over ranks, in the order of their addresses. One thread per number.
extern "C" __global__ void ranks_sum(double* sums, const u64* addresses, u64 n_ranks, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0.0;
    for (u64 rank = 0; rank < n_ranks; ++rank) sum += ((const volatile double*)addresses[rank])[i];
    sums[i] = sum;
}

// Calls the hook for every row. FEMTILE_ROWS rows per block.
extern "C" __global__ void ranks_post(const T* y, const T* x, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 begin = (u64)blockIdx.x * FEMTILE_ROWS;
    const u64 end = begin + FEMTILE_ROWS < n ? begin + FEMTILE_ROWS : n;
    for (u64 row = begin + threadIdx.x; row < end; row += blockDim.x) hook.post(row, x, y[row]);
    hook.finish();
}
