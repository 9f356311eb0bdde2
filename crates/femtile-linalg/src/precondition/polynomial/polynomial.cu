// Vector updates of a polynomial smoother.
#include "femtile.cuh"

// x = alpha D^-1 b, the first step from zero; kept where another step reads it.
extern "C" __global__ void relax_from_zero(
    T* x, T* direction, const T* inverse_diagonal, const T* b, T alpha, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T step = alpha * (inverse_diagonal[i] * b[i]);
    x[i] = step;
    if (direction != 0) direction[i] = step;
}
