// Sound kernels at the corners of the rules; the tests of the emulator change them one text at a time.
#include "femtile.cuh"

// y_i = 3 x_i by two arrays of shared memory side by side.
extern "C" __global__ void beside(double* y, const double* x, u32 n) {
    FEMTILE_SHARED double left[64];
    FEMTILE_SHARED double right[64];
    const u32 i = threadIdx.x;
    left[i] = x[i];
    right[i] = 2.0 * x[i];
    __syncthreads();
    y[i] = left[63 - i] + right[63 - i];
}

// Bytes of one word, each the business of one thread.
extern "C" __global__ void bytes(double* y, const double* x, u32 n) {
    FEMTILE_SHARED unsigned char flags[64];
    const u32 i = threadIdx.x;
    flags[i] = x[i] > 0.0;
    y[i] = flags[i];
    __syncwarp();
    flags[i ^ 3] = 2;
}

// Lanes of a half warp exchange numbers by memory, each half on its own.
extern "C" __global__ void halves(double* y, const double* x, u32 n) {
    FEMTILE_SHARED double tile[64];
    const u32 i = threadIdx.x, half = 0xffffu << (i % 32 / 16 * 16);
    tile[i] = x[i];
    __syncwarp(half);
    y[i] = tile[i ^ 15];
    if (i % 32 == 0) {
        __syncwarp(3);
    } else if (i % 32 == 1) {
        __syncwarp(3);
    }
}

// What all lanes have read the last one may overwrite once they have met.
extern "C" __global__ void overwritten(double* y, const double* x, u32 n) {
    FEMTILE_SHARED double common[2];
    const u32 i = threadIdx.x, warp = i / 32;
    if (i % 32 == 0) common[warp] = x[i];
    __syncwarp();
    const double first = common[warp];
    __syncwarp();
    if (i % 32 == 31) common[warp] = 2.0;
    __syncwarp();
    y[i] = first + common[warp];
}

// All threads pass a barrier, in one of two branches that all of them take.
extern "C" __global__ void branches(double* y, const double* x, u32 n) {
    const u32 i = threadIdx.x;
    if (n > 3) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    y[i] = x[i];
}

// Packs of 16 bytes.
extern "C" __global__ void packs(double* y, const double* x, u32 n) {
    const u32 i = threadIdx.x;
    if (i < n / 2) store_pack(y, i, load_pack(x, i));
}

// All blocks read y[0], and each writes an entry of its own.
extern "C" __global__ void common(double* y, const double* x, u32 n) {
    const double first = y[0];
    y[1 + blockIdx.x] = first;
}

// Two sums by a block, one right after the other.
extern "C" __global__ void twice(double* y, const double* x, u32 n) {
    const u32 i = threadIdx.x;
    const double sum = block_sum(x[i]);
    const double squares = block_sum(x[i] * x[i]);
    if (i == 0) {
        y[0] = sum;
        y[1] = squares;
    }
}

// y_i = what every thread of the block sees of all predicates, and where it is.
extern "C" __global__ void places(double* y, const double* x, u32 n) {
    const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int odd = __syncthreads_count(thread % 2);
    const int any = __syncthreads_or(thread == 7), all = __syncthreads_and(thread < 1000);
    const int three = __syncthreads_or(thread == 3000) + __syncthreads_and(thread < 23);
    const u32 i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    y[i] = i + 1000.0 * odd + 1e6 * any + 1e7 * all + 1e8 * three;
}

// y_i = a number shuffled as `n` says: kind, operand and width.
extern "C" __global__ void shuffles(double* y, const double* x, u32 n) {
    const u32 i = threadIdx.x, kind = n % 4, operand = n / 4 % 32, width = n / 128;
    double value = x[i];
    if (kind == 0) value = __shfl_sync(FULL_WARP, value, operand, width);
    if (kind == 1) value = __shfl_up_sync(FULL_WARP, value, operand, width);
    if (kind == 2) value = __shfl_down_sync(FULL_WARP, value, operand, width);
    if (kind == 3) value = __shfl_xor_sync(FULL_WARP, value, operand, width);
    y[i] = value;
    const u32 votes = __ballot_sync(FULL_WARP, i % 3 == 0);
    y[i + 64] = __popc(votes) + 100.0 * __any_sync(FULL_WARP, i == 40) + 1000.0 * __all_sync(FULL_WARP, i < 32);
}

// What atomic operations leave, and functions that have a body for each type.
extern "C" __global__ void operations(double* y, const double* x, u32 n) {
    FEMTILE_SHARED int numbers[8];
    FEMTILE_SHARED u64 large;
    const u32 i = threadIdx.x;
    if (i < 8) numbers[i] = i == 3 ? -1 : 0;
    if (i == 8) large = ~0ull;
    __syncthreads();
    atomicAdd(&numbers[0], (int)i);
    atomicSub(&numbers[1], 1);
    atomicMax(&numbers[2], (int)i);
    atomicMin(&numbers[3], -(int)i);
    atomicOr(&numbers[4], 1 << i % 8);
    atomicXor(&numbers[5], i == 5 ? 12 : 0);
    atomicCAS(&numbers[6], (int)i, (int)i + 1);
    atomicExch(&numbers[7], 9);
    atomicMin(&large, (u64)i + 5);
    __syncthreads();
    if (i < 8) y[i] = numbers[i];
    if (i == 8) y[i] = (double)large;
    if (i == 9) y[i] = abs(-0.5) + abs(-0.25f) + max(1, 2) + min(3.5, 4.0) + fma(2.0f, 3.0f, 1.0f);
    if (i == 10) y[i] = sqrt(2.0f) == (float)sqrt(2.0) ? rsqrt(0.25) : 0.0;
    if (i == 11) y[i] = __longlong_as_double(__double_as_longlong(1.5)) + __clz(1) + __ffs(8) + __popc(7);
}

// Runs blocks in some order: each leaves its number.
extern "C" __global__ void order(u32* last, u64 unused) { atomicExch(last, blockIdx.x); }
