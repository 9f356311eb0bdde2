// From the precision of the cycle to f64.
#include "femtile.cuh"

// y += alpha x.
extern "C" __global__ void box_add(double* y, double alpha, const T* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] += alpha * (double)x[i];
}
