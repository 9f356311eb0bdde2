// Products of 1-D matrices with tensors in shared memory, a thread per column of the result.
#pragma once
#include "layout.cuh"

// Calls `use` with the sum over j of A(i, j) from(.. j ..) for each entry of a tensor `To`; i and j are indices along
// AXIS. Rows of A, or its columns if transposed, are as long as `From`.
template <u32 AXIS, bool IS_TRANSPOSED, typename From, typename To, typename Use>
__device__ inline void contract(const T* matrix, const T* from, u32 own, Use use) {
    // Packed: threads lie along x and y, so that results are contiguous; otherwise along a row of the matrix and a column
    // of the tensor.
    constexpr u32 FAST = !IS_PACKED && AXIS == 0 ? 1 : 0, SLOW = IS_PACKED ? 1 : AXIS, LOOP = 3 - FAST - SLOW;
    constexpr u32 LENGTH = From::length(AXIS), LAYERS = To::length(LOOP), OF_THREAD = IS_CUBE ? 1 : LAYERS;
    // Full unrolling of long loops would exceed the registers.
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
