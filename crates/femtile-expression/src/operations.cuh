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

// Elementary functions of programs, by the polynomials of the host and without branches, so that the compiler may
// interleave many of them. Results below the normal range are zero.
__device__ __forceinline__ unsigned long long expression_bits(double a) {
#ifdef __CUDA_ARCH__
    return (unsigned long long)__double_as_longlong(a);
#else
    unsigned long long bits;
    __builtin_memcpy(&bits, &a, sizeof(bits));
    return bits;
#endif
}

__device__ __forceinline__ double expression_from_bits(unsigned long long bits) {
#ifdef __CUDA_ARCH__
    return __longlong_as_double((long long)bits);
#else
    double a;
    __builtin_memcpy(&a, &bits, sizeof(a));
    return a;
#endif
}

// The upper half of the bits without the sign.
__device__ __forceinline__ unsigned expression_magnitude(double a) {
    return (unsigned)(expression_bits(a) >> 32) & 0x7fffffffu;
}

// a/b within two units in the last place where b and its reciprocal are normal numbers; otherwise b counts as zero or
// infinite.
__device__ __forceinline__ double expression_quotient(double a, double b) {
#ifdef __CUDA_ARCH__
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
    // The estimate has some 20 good bits, and this step three times as many.
    const double error = fma(-b, r, 1.0);
    const double better = fma(r, fma(error, error, error), r);
    return a * (expression_magnitude(b) - 0x00200000u < 0x7fa00000u ? better : r);
#else
    return a / b;
#endif
}

__device__ __forceinline__ float expression_quotient(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

// k in the lowest bits of `rounded` and r, where a = k log 2 + r and |r| is at most log(2)/2.
__device__ __forceinline__ double expression_reduced(double a, double& rounded) {
    const double shift = 6755399441055744.0;
    rounded = fma(a, 1.4426950408889634, shift);
    const double k = rounded - shift;
    return fma(k, -5.497923018708371e-14, fma(k, -0.6931471805598903, a));
}

// (exp(r) - 1 - r)/r^2, with a relative error of exp(r) - 1 below 2^-55.
__device__ __forceinline__ double expression_exp_rest(double r) {
    double q = fma(r, 2.5053780874715636e-8, 2.762605152492373e-7);
    q = fma(r, q, 2.755740756180425e-6);
    q = fma(r, q, 2.4801505241294646e-5);
    q = fma(r, q, 1.9841269718949856e-4);
    q = fma(r, q, 0.0013888888931590192);
    q = fma(r, q, 0.00833333333338959);
    q = fma(r, q, 0.04166666666657668);
    q = fma(r, q, 0.1666666666666659);
    return fma(r, q, 0.5000000000000005);
}

// exp(a) within two units in the last place for |a| below 708, and 0 or infinity beyond.
__device__ __forceinline__ double expression_exp(double a) {
    double rounded;
    const double r = expression_reduced(a, rounded);
    const double power = fma(r, fma(r, expression_exp_rest(r), 1.0), 1.0);
    const double value = expression_from_bits(expression_bits(power) + (expression_bits(rounded) << 52));
    const unsigned magnitude = expression_magnitude(a);
    const double limit = (long long)expression_bits(a) < 0 ? 0.0 : expression_from_bits(0x7ff0000000000000ull);
    return magnitude < 0x40862000u ? value : a != a ? a : limit;
}

__device__ __forceinline__ float expression_exp(float a) { return expf(a); }

// exp(a) - 1 within three units in the last place.
__device__ __forceinline__ double expression_expm1(double a) {
    double bounded = a > 710.0 ? 710.0 : a;
    bounded = bounded < -50.0 ? -50.0 : bounded;
    double rounded;
    const double r = expression_reduced(bounded, rounded);
    const double rest = fma(r * r, expression_exp_rest(r), r);
    // 2^(k-1), since 2^k may be too large.
    const double half = expression_from_bits((expression_bits(rounded) + 1022) << 52);
    const double value = 2.0 * fma(half, rest, half - 0.5);
    return a == 0.0 || a != a ? a : value;
}

__device__ __forceinline__ float expression_expm1(float a) { return expm1f(a); }

// log(a) within two units in the last place; numbers below the normal range count as zero.
__device__ __forceinline__ double expression_log(double a) {
    const unsigned long long root_half = 0x3fe6a09e00000000ull, one = 0x3ff0000000000000ull;
    const unsigned long long bits = expression_bits(a) + (one - root_half);
    const double f = expression_from_bits((bits & 0x000fffffffffffffull) + root_half) - 1.0;
    const double k = (double)((int)(bits >> 52) - 1023);
    const double s = expression_quotient(f, 2.0 + f);
    const double z = s * s;
    double rest = fma(z, 0.1479750793138197, 0.1531390321315662);
    rest = fma(z, rest, 0.1818356974167093);
    rest = fma(z, rest, 0.22222198475936597);
    rest = fma(z, rest, 0.28571428743263346);
    rest = fma(z, rest, 0.3999999999941109);
    rest = z * fma(z, rest, 0.6666666666666735);
    const double half_square = 0.5 * f * f;
    const double small = fma(s, half_square + rest, k * 5.497923018708371e-14);
    const double value = fma(k, 0.6931471805598903, f - (half_square - small));
    const double infinity = expression_from_bits(0x7ff0000000000000ull);
    const double positive = a < infinity ? value : a;
    return a >= 2.2250738585072014e-308 ? positive : a >= 0.0 ? -infinity : expression_from_bits(0x7ff8000000000000ull);
}

__device__ __forceinline__ float expression_log(float a) { return logf(a); }

// (exp(a) - 1)/a with its limits at 0 and infinity.
__device__ __forceinline__ double expression_exprel(double a) {
    const double numerator = expression_expm1(a);
    const double value = expression_quotient(numerator, a);
    return fabs(a) < 1e-17 ? 1.0 : numerator > 1.7976931348623157e308 ? numerator : value;
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
