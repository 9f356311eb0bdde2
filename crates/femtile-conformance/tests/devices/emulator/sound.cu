// Sound kernels; the tests of the emulator change them one text at a time.
#include "femtile.cuh"

// y is x backwards.
extern "C" __global__ void reverse(double* y, const double* x, u32 n) {
    const u32 i = threadIdx.x;
    if (i < n) y[i] = x[n - 1 - i];
}

// y[0] is the sum of x over one block, by halves in shared memory.
extern "C" __global__ void reduce(double* y, const double* x, u32 n) {
    FEMTILE_SHARED double tile[128];
    const u32 i = threadIdx.x;
    tile[i] = x[i];
    __syncthreads();  // first
    for (u32 half = n / 2; half > 0; half /= 2) {
        if (i < half) tile[i] += tile[i + half];
    __syncthreads();  // between
    }
    if (i == 0) y[0] = tile[0];
}

// y = 2 x, through dynamic shared memory.
extern "C" __global__ void dynamic(double* y, const double* x, u32 n) {
    FEMTILE_DYNAMIC_SHARED(double, tile);
    const u32 i = threadIdx.x;
    tile[i] = 2.0 * x[i];
    __syncthreads();
    y[i] = tile[n - 1 - i];
}

// y[0] counts the threads of the grid.
extern "C" __global__ void count(double* y, const double* x, u32 n) {
    atomicAdd(&y[0], 1.0);
}

// y[w] is the sum of x over warp w, written by one lane and read by others of the warp.
extern "C" __global__ void warps(double* y, const double* x, u32 n) {
    FEMTILE_SHARED double tile[64];
    const u32 i = threadIdx.x;
    tile[i ^ 1] = x[i];
    __syncwarp();
    double sum = tile[i];
    for (u32 half = 16; half > 0; half /= 2) sum += __shfl_down_sync(FULL_WARP, sum, half);
    if (i % 32 == 0) y[i / 32] = sum;
}

// y[0] is the sum of x over four blocks of 32: the last one adds what the others left.
extern "C" __global__ void total(double* y, const double* x, u32 n) {
    FEMTILE_SHARED bool is_last;
    const double sum = warp_sum(x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        y[1 + blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(&y[127], 1.0) == 3.0;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 1) y[0] = y[1] + y[2] + y[3] + y[4];
}
