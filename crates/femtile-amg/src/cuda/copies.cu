// What a copy of a matrix in another precision needs.
#include "femtile.cuh"

// The precision that vectors are converted from.
typedef FEMTILE_FROM From;

// The largest magnitude, as its bits, which are in the order of the numbers; NaN comes after all of them.
extern "C" __global__ void amg_largest(u64* largest, const From* x, u64 n) {
    u64 own = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x) {
        const u64 bits = (u64)__double_as_longlong(fabs((double)x[i]));
        own = own < bits ? bits : own;
    }
    for (u32 half = WARP / 2; half > 0; half /= 2) {
        const u64 other = __shfl_xor_sync(FULL_WARP, own, (int)half);
        own = own < other ? other : own;
    }
    if (threadIdx.x % WARP == 0) atomicMax(largest, own);
}

extern "C" __global__ void amg_copy(u32* to, const u32* from, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
