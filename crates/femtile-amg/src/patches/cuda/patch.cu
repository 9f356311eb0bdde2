// The smoother by patches, `[fu2014]` section 5.2.2, a block a patch, its vectors in shared memory:
//
//   A = A_I + A_B + A_D: entries within patches, entries that join two, the diagonal;
//   M^-1 r is `inner` iterations g = g + S (r - (A_I + A_D) g) from zero.
//
// A thread takes rows in turn. Blocks of the matrix are read from global memory once and then from the first cache.
#include "femtile.cuh"

typedef unsigned short u16;

// How blocks are kept; see `Inside` on the host.
enum Format { FULL_ROW_ELL, CSR, SYMMETRIC_COO };
const Format FORMAT = FEMTILE_FORMAT;

// The matrix within patches.
struct Inside {
    // The first row of each patch, and the end; the first entry of each patch, or of each row (CSR), and the end.
    const u32 *starts, *places;
    // Counted from the first row of the patch; rows in SYMMETRIC_COO alone.
    const u16 *rows, *columns;
    const T *values, *diagonal;
    // The reciprocals of the diagonal, times the damping within patches.
    const T* scale;
    // Rows of the largest patch.
    u64 most_rows;
};

// One patch, and what of it lies in shared memory.
struct Patch {
    u32 begin, n;
    u64 entry, end;
    // Two iterates, right side, S, diagonal, sums of rows (SYMMETRIC_COO).
    T *g, *next, *r, *scale, *diagonal, *sums;
};

// All threads call it; they meet before anything is read that others wrote.
__device__ inline Patch load(const Inside& inside, T* shared) {
    Patch patch;
    patch.begin = inside.starts[blockIdx.x];
    patch.n = inside.starts[blockIdx.x + 1] - patch.begin;
    patch.entry = FORMAT == CSR ? 0 : inside.places[blockIdx.x];
    patch.end = FORMAT == CSR ? 0 : inside.places[blockIdx.x + 1];
    const u32 most = (u32)inside.most_rows;
    patch.g = shared;
    patch.next = patch.g + most;
    patch.r = patch.next + most;
    patch.scale = patch.r + most;
    patch.diagonal = patch.scale + most;
    patch.sums = patch.diagonal + most;
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) {
        patch.scale[i] = inside.scale[patch.begin + i];
        patch.diagonal[i] = inside.diagonal[patch.begin + i];
    }
    return patch;
}

// Adds up A_I x where rows cannot do so on their own; x is complete before, and may be written after.
__device__ inline void prepare(const Inside& inside, const Patch& patch, const T* x) {
    if (FORMAT == SYMMETRIC_COO) {
        for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) patch.sums[i] = (T)0;
        __syncthreads();
        for (u64 at = patch.entry + threadIdx.x; at < patch.end; at += blockDim.x) {
            const u32 row = inside.rows[at], column = inside.columns[at];
            const T value = inside.values[at];
            atomicAdd(&patch.sums[row], value * x[column]);
            atomicAdd(&patch.sums[column], value * x[row]);
        }
        __syncthreads();
    }
}

// A row of (A_I + A_D) x.
__device__ inline T product(const Inside& inside, const Patch& patch, const T* x, u32 i) {
    T sum = (T)0;
    if (FORMAT == SYMMETRIC_COO) {
        sum = patch.sums[i];
    } else if (FORMAT == CSR) {
        const u64 end = inside.places[patch.begin + i + 1];
        for (u64 at = inside.places[patch.begin + i]; at < end; ++at) {
            sum += inside.values[at] * x[inside.columns[at]];
        }
    } else {
        for (u64 at = patch.entry + i; at < patch.end; at += patch.n) {
            sum += inside.values[at] * x[inside.columns[at]];
        }
    }
    return patch.diagonal[i] * x[i] + sum;
}

// g = M^-1 r; each thread has its own entries of r before, g is complete after.
__device__ inline void solve(const Inside& inside, Patch& patch, u32 inner) {
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) patch.g[i] = patch.scale[i] * patch.r[i];
    __syncthreads();
    for (u32 k = 1; k < inner; ++k) {
        prepare(inside, patch, patch.g);
        for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) {
            const T rest = patch.r[i] - product(inside, patch, patch.g, i);
            patch.next[i] = patch.g[i] + patch.scale[i] * rest;
        }
        __syncthreads();
        T* const before = patch.g;
        patch.g = patch.next;
        patch.next = before;
    }
}

// x = omega M^-1 b, r = b - (A_I + A_D) x.
extern "C" __global__ void patch_relax_from_zero(T* x, T* r, const T* b, Inside inside, T omega, u32 inner) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    Patch patch = load(inside, shared);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) patch.r[i] = b[patch.begin + i];
    solve(inside, patch, inner);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) {
        const T own = omega * patch.g[i];
        patch.next[i] = own;
        x[patch.begin + i] = own;
    }
    __syncthreads();
    prepare(inside, patch, patch.next);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) {
        r[patch.begin + i] = patch.r[i] - product(inside, patch, patch.next, i);
    }
}

// x = x + omega M^-1 (b - (A_I + A_D) x).
extern "C" __global__ void patch_relax(T* x, const T* b, Inside inside, T omega, u32 inner) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    Patch patch = load(inside, shared);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) patch.next[i] = x[patch.begin + i];
    __syncthreads();
    prepare(inside, patch, patch.next);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) {
        patch.r[i] = b[patch.begin + i] - product(inside, patch, patch.next, i);
    }
    solve(inside, patch, inner);
    for (u32 i = threadIdx.x; i < patch.n; i += blockDim.x) x[patch.begin + i] += omega * patch.g[i];
}

// y = y - A_B x, a thread each of the n rows that have entries there.
extern "C" __global__ void patch_subtract_outside(
    T* y, const u32* rows, const u32* offsets, const u32* columns, const T* values, const T* x, u64 n) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    T sum = (T)0;
    for (u64 at = offsets[i], end = offsets[i + 1]; at < end; ++at) sum += values[at] * x[columns[at]];
    y[rows[i]] -= sum;
}
