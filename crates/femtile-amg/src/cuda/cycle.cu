// What a multigrid cycle does besides products.
#include "femtile.cuh"

// The precision that vectors are converted from.
typedef FEMTILE_FROM From;

// x = alpha D^-1 b, the first step of a smoother from zero; kept where another step reads it.
extern "C" __global__ void amg_first_step(
    T* x, T* direction, const T* inverse_diagonal, const T* b, T alpha, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T step = alpha * (inverse_diagonal[i] * b[i]);
    x[i] = step;
    if (direction != 0) direction[i] = step;
}

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

extern "C" __global__ void amg_convert(T* y, double alpha, const From* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * (double)x[i]);
}

// y = alpha x in another order.
extern "C" __global__ void amg_gather(T* y, double alpha, const From* x, const u32* order, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * (double)x[order[i]]);
}
