// Vectors between two precisions.
#include "femtile.cuh"

// The precision that vectors are converted from.
typedef FEMTILE_FROM From;

// y = alpha x. Reads and writes n values.
extern "C" __global__ void vector_convert(T* y, double alpha, const From* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)(alpha * (double)x[i]);
}

// y = alpha x in another order; NaN where there is no such entry.
extern "C" __global__ void vector_gather(T* y, double alpha, const From* x, const u32* order, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u32 at = order[i];
    y[i] = at < n ? (T)(alpha * (double)x[at]) : (T)(0.0 / 0.0);
}
