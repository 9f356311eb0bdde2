// Operations of expressions on a GPU, with the meaning that they have on the host.
#pragma once

// A product that is rounded before anything is added to it, as it is on the host: x*y - y*x is zero.
__device__ __forceinline__ double expression_product(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

// -1, 0 or 1; NaN for NaN.
__device__ __forceinline__ double expression_sign(double a) {
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a * 0.0 + 0.0;
}

__device__ __forceinline__ float expression_sign(float a) {
    return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a * 0.0f + 0.0f;
}

// (exp(a) - 1)/a with its limits at 0 and infinity.
__device__ __forceinline__ double expression_exprel(double a) {
    const double numerator = expm1(a);
    return a == 0.0 ? 1.0 : numerator > 1.7976931348623157e308 ? numerator : numerator / a;
}

__device__ __forceinline__ float expression_exprel(float a) {
    const float numerator = expm1f(a);
    return a == 0.0f ? 1.0f : numerator > 3.4028234663852886e38f ? numerator : numerator / a;
}

// The smaller one; the first where it is NaN, else the second where that is NaN.
__device__ __forceinline__ double expression_min(double a, double b) {
    return a < b || a != a ? a : b;
}

__device__ __forceinline__ float expression_min(float a, float b) {
    return a < b || a != a ? a : b;
}

// The larger one, with NaN as for the smaller one.
__device__ __forceinline__ double expression_max(double a, double b) {
    return a > b || a != a ? a : b;
}

__device__ __forceinline__ float expression_max(float a, float b) {
    return a > b || a != a ? a : b;
}

// Equality within 1e-12 max(1, |a|, |b|), 1e-6 of it for floats; infinities are equal to themselves alone, NaN to
// nothing.
__device__ __forceinline__ bool expression_equal(double a, double b) {
    const double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    const double scale = larger > 1.0 ? larger : 1.0;
    return a == b || (fabs(a - b) <= 1e-12 * scale && scale <= 1.7976931348623157e308);
}

__device__ __forceinline__ bool expression_equal(float a, float b) {
    const float larger = fabsf(a) > fabsf(b) ? fabsf(a) : fabsf(b);
    const float scale = larger > 1.0f ? larger : 1.0f;
    return a == b || (fabsf(a - b) <= 1e-6f * scale && scale <= 3.4028234663852886e38f);
}
