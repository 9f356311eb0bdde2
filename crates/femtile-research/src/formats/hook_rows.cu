// The pass of a hook over all rows, behind a product whose rows have no single owner.
#include "femtile.cuh"
#include "hook.cuh"

// Calls the hook for each row. Reads n values of y, and what the hook reads.
extern "C" __global__ void hook_rows(const T* y, const T* x, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 row = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (row < n) hook.post(row, x, y[row]);
    hook.finish();
}
