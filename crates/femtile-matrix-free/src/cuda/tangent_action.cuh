// The tangent of any form at one point, by the text of `tangent.cuh`, between the gradient and its transpose on the reference cell.
//
// The kernel has defined DIMENSION, TOGETHER components, their SLOTS, and the numbers that the text reads: OF_CELL and AT_POINT.
#pragma once
#include "femtile.cuh"
#include "tangent.cuh"

// Turns values and derivatives along the axes of the reference cell into df0 and df1 along those axes times w. `inverse` is the
// inverse Jacobian by rows; `in` has the numbers of the cell and of the point after the slots, which are written here.
__device__ inline void act_in_space(
    T (&values)[TOGETHER], T (&slopes)[TOGETHER][DIMENSION], const T (&inverse)[DIMENSION][DIMENSION], T w,
    T (&in)[SLOTS + OF_CELL + AT_POINT]) {
    T out[SLOTS];
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
        in[c * (1 + DIMENSION)] = values[c];
#pragma unroll
        for (u32 i = 0; i < DIMENSION; ++i) {
            T sum = inverse[0][i] * slopes[c][0];
#pragma unroll
            for (u32 a = 1; a < DIMENSION; ++a) sum += inverse[a][i] * slopes[c][a];
            in[c * (1 + DIMENSION) + 1 + i] = sum;
        }
    }
    tangent(out, in);
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) {
        values[c] = w * out[c * (1 + DIMENSION)];
#pragma unroll
        for (u32 a = 0; a < DIMENSION; ++a) {
            T sum = inverse[a][0] * out[c * (1 + DIMENSION) + 1];
#pragma unroll
            for (u32 i = 1; i < DIMENSION; ++i) sum += inverse[a][i] * out[c * (1 + DIMENSION) + 1 + i];
            slopes[c][a] = w * sum;
        }
    }
}
