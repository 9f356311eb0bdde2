// Products of 1-D matrices with tensors in shared memory, a thread a column of the result.
#pragma once
#include "layout.cuh"

// Hands sum over j of A(i, j) from(.. j ..) to `use`, for each entry of a tensor `To`; i and j stand in the place of the axis.
// Rows of A are as long as `From`, or its columns where it is transposed.
template <u32 AXIS, bool IS_TRANSPOSED, typename From, typename To, typename Use>
__device__ inline void contract(const T* matrix, const T* from, u32 own, Use use) {
    // Packed, threads always lie along x and y, so that results are written side by side; else a thread's row is one of the
    // matrix, and its column one of the tensor.
    constexpr u32 FAST = !IS_PACKED && AXIS == 0 ? 1 : 0, SLOW = IS_PACKED ? 1 : AXIS, LOOP = 3 - FAST - SLOW;
    constexpr u32 LENGTH = From::length(AXIS), LAYERS = To::length(LOOP), OF_THREAD = IS_CUBE ? 1 : LAYERS;
    // Long loops in full would keep more entries than there are registers for.
    constexpr u32 UNROLLED = LENGTH <= 5 ? LENGTH : 3;
    const Place<To::length(FAST), To::length(SLOW), LAYERS> place(own);
    if (!place.is_active()) return;
    T sums[OF_THREAD] = {};
#pragma unroll UNROLLED
    for (u32 j = 0; j < LENGTH; ++j) {
#pragma unroll
        for (u32 i = 0; i < OF_THREAD; ++i) {
            u32 at[3];
            at[FAST] = place.fast;
            at[SLOW] = place.slow;
            at[LOOP] = IS_CUBE ? place.layer : i;
            const u32 entry = IS_TRANSPOSED ? j * LENGTH + at[AXIS] : at[AXIS] * LENGTH + j;
            at[AXIS] = j;
            sums[i] += matrix[entry] * from[From::at(at[0], at[1], at[2])];
        }
    }
#pragma unroll
    for (u32 i = 0; i < OF_THREAD; ++i) {
        u32 at[3];
        at[FAST] = place.fast;
        at[SLOW] = place.slow;
        at[LOOP] = IS_CUBE ? place.layer : i;
        use(at[0], at[1], at[2], sums[i]);
    }
}
