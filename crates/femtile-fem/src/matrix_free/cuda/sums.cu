// What remains of y = A x after matrix_free_apply: what several blocks have, what is constrained, and the hook.
#include "femtile.cuh"
#include "hook.cuh"

// y = the sum of the shares of a row, in their order. A thread takes a row.
extern "C" __global__ void matrix_free_sum(
    T* y, const T* shares, const u32* rows, const u32* begins, const u32* places, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T sum = 0;
    for (u32 k = begins[i]; k < begins[i + 1]; ++k) sum += shares[places[k]];
    y[rows[i]] = sum;
}

// y = x where it is constrained. A thread takes a row.
extern "C" __global__ void matrix_free_keep(T* y, const T* x, const u32* rows, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[rows[i]] = x[rows[i]];
}

// Shows every row to the hook. A block takes FEMTILE_ROWS rows.
extern "C" __global__ void matrix_free_post(const T* y, const T* x, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 begin = (u64)blockIdx.x * FEMTILE_ROWS;
    const u64 end = begin + FEMTILE_ROWS < n ? begin + FEMTILE_ROWS : n;
    for (u64 row = begin + threadIdx.x; row < end; row += blockDim.x) hook.post(row, x, y[row]);
    hook.finish();
}
