// Between the precision of a solve and that of its cycles.
#include "femtile.cuh"

// y = alpha x.
extern "C" __global__ void box_narrow(T* y, double alpha, const double* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * x[i]);
}

// y = alpha x + beta y; y is not read where beta is zero.
extern "C" __global__ void box_widen(double* y, double alpha, const T* x, double beta, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = beta == 0.0 ? alpha * (double)x[i] : alpha * (double)x[i] + beta * y[i];
}
