// 1/x to about one unit in the last place, without the branches of a full division.
//
// Zero gives an infinity or NaN, and so do f64 numbers below the normal range: both count as lost.
#pragma once
#include "femtile.cuh"

#if defined(FEMTILE_EMULATED)
__device__ inline float reciprocal(float x) { return 1.0f / x; }
__device__ inline double reciprocal(double x) { return 1.0 / x; }
#else
__device__ inline float reciprocal(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// The first estimate has some 20 good bits; each step doubles them.
__device__ inline double reciprocal(double x) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    r = fma(r, fma(-x, r, 1.0), r);
    return fma(r, fma(-x, r, 1.0), r);
}
#endif
