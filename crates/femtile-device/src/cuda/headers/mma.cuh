// Products of small f64 matrices by a whole warp: D = A B + C with A of 16 × K, B of K × 8, K = 4, 8 or 16.
//
// Lane l holds, with g = l / 4 and t = l % 4, in the order of the tensor cores:
//   A[i] = A(g + 8 (i % 2), t + 4 (i / 2)),  i < K / 2
//   B[i] = B(t + 4 i, g),                    i < K / 4
//   C[i] = C(g + 8 (i / 2), 2 t + i % 2),    i < 4
// All 32 lanes call it. On architectures before 9.0, and in the emulator, lanes exchange entries by shuffles.
#pragma once
#include "femtile.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ inline void mma_f64(double (&c)[4], const double (&a)[2], const double (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(b[0]));
}

__device__ inline void mma_f64(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

__device__ inline void mma_f64(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
          "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
#else
// N_B is K / 4. Entry (row, k) of A is with lane 4 (row % 8) + k % 4, entry (k, column) of B with 4 column + k % 4.
template <u32 N_A, u32 N_B>
__device__ inline void mma_f64(double (&c)[4], const double (&a)[N_A], const double (&b)[N_B]) {
    const u32 lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (u32 block = 0; block < N_B; ++block) {
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            const double upper = __shfl_sync(FULL_WARP, a[2 * block], int(4 * g + k));
            const double lower = __shfl_sync(FULL_WARP, a[2 * block + 1], int(4 * g + k));
            const double left = __shfl_sync(FULL_WARP, b[block], int(4 * (2 * t) + k));
            const double right = __shfl_sync(FULL_WARP, b[block], int(4 * (2 * t + 1) + k));
            c[0] += upper * left;
            c[1] += upper * right;
            c[2] += lower * left;
            c[3] += lower * right;
        }
    }
}
#endif
