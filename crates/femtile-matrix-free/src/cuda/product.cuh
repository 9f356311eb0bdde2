// A point's part of x.A x.
#pragma once
#include "lines.cuh"

// Adds the part of a point, if requested.
__device__ inline void add_product(
    double& product, const T (&slope)[DIMENSION], const T (&flux)[DIMENSION], T value, T mu) {
#if FEMTILE_PRODUCT
#if FEMTILE_STIFFNESS
    double sum = (double)slope[0] * flux[0];
#pragma unroll
    for (u32 d = 1; d < DIMENSION; ++d) sum += (double)slope[d] * flux[d];
    product += sum;
#endif
#if FEMTILE_MASS
    product += (double)mu * value * value;
#endif
#endif
}
