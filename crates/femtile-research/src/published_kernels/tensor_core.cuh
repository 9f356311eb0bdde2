// Products of 1-D matrices with tensors in shared memory by tensor cores: a warp computes eight columns of the tensor and
// all rows of the matrix, at most 15. Rows are padded to 16 and terms to a multiple of four with zeros.
#pragma once
#include "layout.cuh"
#include "mma.cuh"

static_assert(TEAM % WARP == 0 && N <= 16, "a team has whole warps, a tile all rows");

// As in contract.cuh. All threads of a warp call it.
template <u32 AXIS, bool IS_TRANSPOSED, typename From, typename To, typename Use>
__device__ inline void contract(const T* matrix, const T* from, u32 own, Use use) {
    constexpr u32 LENGTH = From::length(AXIS), STEPS = (LENGTH + 3) / 4;
    constexpr u32 FIRST = AXIS == 0 ? 1 : 0, LAST = AXIS == 2 ? 1 : 2;
    constexpr u32 ROW = To::length(FIRST), COLUMNS = ROW * To::length(LAST);
    const u32 lane = own % WARP, g = lane / 4, t = lane % 4;
    u32 at[3];
    double a[STEPS][2];
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 i = g + 8 * half, j = t + 4 * step;
            const u32 entry = IS_TRANSPOSED ? j * LENGTH + i : i * LENGTH + j;
            a[step][half] = i < N && j < LENGTH ? matrix[entry] : 0;
        }
    }
    for (u32 tile = own / WARP; tile * 8 < COLUMNS; tile += TEAM / WARP) {
        double c[4] = {};
        const u32 column = tile * 8 + g;
        at[FIRST] = column % ROW;
        at[LAST] = column / ROW;
#pragma unroll
        for (u32 step = 0; step < STEPS; ++step) {
            at[AXIS] = t + 4 * step;
            const bool is_there = column < COLUMNS && at[AXIS] < LENGTH;
            const double b[1] = {is_there ? from[From::at(at[0], at[1], at[2])] : 0};
            mma_f64(c, a[step], b);
        }
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            const u32 result = tile * 8 + 2 * t + i % 2;
            at[AXIS] = g + 8 * (i / 2);
            at[FIRST] = result % ROW;
            at[LAST] = result / ROW;
            if (at[AXIS] < N && result < COLUMNS) use(at[0], at[1], at[2], c[i]);
        }
    }
}
