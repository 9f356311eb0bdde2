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

extern "C" __global__ void amg_convert(T* y, double alpha, const From* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * (double)x[i]);
}

// y = alpha x in another order.
extern "C" __global__ void amg_gather(T* y, double alpha, const From* x, const u32* order, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * (double)x[order[i]]);
}
