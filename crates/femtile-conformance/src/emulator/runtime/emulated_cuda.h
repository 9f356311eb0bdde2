// What CUDA C++ has built in, for kernels that the C++ compiler of the host compiles.
//
// It is included before the text of a kernel and includes nothing, so that kernels see the names that NVRTC gives
// them and no others. What needs more than a line is in the runtime, which is linked with every kernel.
#pragma once

#define FEMTILE_EMULATED 1
#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

typedef __SIZE_TYPE__ size_t;

// The runtime changes these when it changes threads. A thread never sees them change, so the compiler may take
// them for constants, and does not have each look at them checked.
struct uint3 {
    unsigned int x, y, z;
};
typedef uint3 dim3;
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern unsigned char* const femtile_dynamic_shared;

// Each array of static shared memory has a gap before it, by whose contents the runtime knows it: the gap shows
// who runs over the end of the array before.
#define FEMTILE_JOIN_NOW(a, b) a##b
#define FEMTILE_JOIN(a, b) FEMTILE_JOIN_NOW(a, b)
#define FEMTILE_IN_SHARED __attribute__((section("femtile_shared"), used, aligned(16)))
struct FemtileGap {
    unsigned long long words[16];
};
#define FEMTILE_GAP_WORD 0x7fe6d1e09a6e5c3bull
#define FEMTILE_GAP(n)                                                     \
    static FemtileGap FEMTILE_JOIN(femtile_gap_, n) FEMTILE_IN_SHARED = { \
        {FEMTILE_GAP_WORD, FEMTILE_GAP_WORD ^ 1, FEMTILE_GAP_WORD ^ 2}};
#define FEMTILE_SHARED FEMTILE_GAP(__COUNTER__) static FEMTILE_IN_SHARED
#define FEMTILE_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(femtile_dynamic_shared)

// A place in the source, which a collective operation takes from its caller.
#define FEMTILE_SITE const char *file = __builtin_FILE(), unsigned int line = __builtin_LINE()

void __syncthreads(FEMTILE_SITE);
int __syncthreads_count(int predicate, FEMTILE_SITE);
int __syncthreads_and(int predicate, FEMTILE_SITE);
int __syncthreads_or(int predicate, FEMTILE_SITE);
void __syncwarp(unsigned int mask = 0xffffffffu, FEMTILE_SITE);
unsigned int __ballot_sync(unsigned int mask, int predicate, FEMTILE_SITE);
int __any_sync(unsigned int mask, int predicate, FEMTILE_SITE);
int __all_sync(unsigned int mask, int predicate, FEMTILE_SITE);
unsigned int __activemask();
void __threadfence();
inline void __threadfence_block() {}
void __trap();

enum FemtileShuffle { FEMTILE_FROM_LANE, FEMTILE_UP, FEMTILE_DOWN, FEMTILE_XOR };
unsigned long long femtile_shuffle(unsigned int mask, FemtileShuffle kind, unsigned long long bits,
                                   unsigned int operand, int width, const char* file, unsigned int line);

template <typename V>
inline V femtile_shuffle_value(unsigned int mask, FemtileShuffle kind, V value, unsigned int operand, int width,
                               const char* file, unsigned int line) {
    static_assert(sizeof(V) == 4 || sizeof(V) == 8, "values of 4 or 8 bytes are shuffled");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(V));
    bits = femtile_shuffle(mask, kind, bits, operand, width, file, line);
    __builtin_memcpy(&value, &bits, sizeof(V));
    return value;
}
template <typename V>
inline V __shfl_sync(unsigned int mask, V value, int lane, int width = 32, FEMTILE_SITE) {
    return femtile_shuffle_value(mask, FEMTILE_FROM_LANE, value, (unsigned int)lane, width, file, line);
}
template <typename V>
inline V __shfl_up_sync(unsigned int mask, V value, unsigned int delta, int width = 32, FEMTILE_SITE) {
    return femtile_shuffle_value(mask, FEMTILE_UP, value, delta, width, file, line);
}
template <typename V>
inline V __shfl_down_sync(unsigned int mask, V value, unsigned int delta, int width = 32, FEMTILE_SITE) {
    return femtile_shuffle_value(mask, FEMTILE_DOWN, value, delta, width, file, line);
}
template <typename V>
inline V __shfl_xor_sync(unsigned int mask, V value, int lanes, int width = 32, FEMTILE_SITE) {
    return femtile_shuffle_value(mask, FEMTILE_XOR, value, (unsigned int)lanes, width, file, line);
}

#define FEMTILE_ATOMICS(V)    \
    V atomicAdd(V*, V);       \
    V atomicSub(V*, V);       \
    V atomicMin(V*, V);       \
    V atomicMax(V*, V);       \
    V atomicAnd(V*, V);       \
    V atomicOr(V*, V);        \
    V atomicXor(V*, V);       \
    V atomicExch(V*, V);      \
    V atomicCAS(V*, V, V);
FEMTILE_ATOMICS(int)
FEMTILE_ATOMICS(unsigned int)
FEMTILE_ATOMICS(unsigned long long)
#undef FEMTILE_ATOMICS
float atomicAdd(float*, float);
double atomicAdd(double*, double);
float atomicExch(float*, float);
double atomicExch(double*, double);

// Copies to shared memory that a thread asks for and later waits for; before that their bytes count as unwritten.
void femtile_emulate_copy(void* to, const void* from, unsigned int bytes);
void femtile_emulate_commit();
void femtile_emulate_wait(unsigned int groups_left);

template <typename V>
inline V __ldg(const V* address) { return *address; }
template <typename V>
inline V __ldcs(const V* address) { return *address; }
template <typename V>
inline V __ldcg(const V* address) { return *address; }
template <typename V>
inline void __stcs(V* address, V value) { *address = value; }
template <typename V>
inline void __stcg(V* address, V value) { *address = value; }

inline int __popc(unsigned int bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((unsigned int)bits); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll((unsigned long long)bits); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
    return (unsigned int)((unsigned long long)a * b >> 32);
}

#define FEMTILE_BITS(name, To, From)                   \
    inline To name(From value) {                       \
        To bits;                                       \
        __builtin_memcpy(&bits, &value, sizeof(bits)); \
        return bits;                                   \
    }
FEMTILE_BITS(__float_as_int, int, float)
FEMTILE_BITS(__float_as_uint, unsigned int, float)
FEMTILE_BITS(__int_as_float, float, int)
FEMTILE_BITS(__uint_as_float, float, unsigned int)
FEMTILE_BITS(__double_as_longlong, long long, double)
FEMTILE_BITS(__longlong_as_double, double, long long)
#undef FEMTILE_BITS

#define FEMTILE_ORDER(V)                                \
    inline V min(V a, V b) { return b < a ? b : a; }    \
    inline V max(V a, V b) { return a < b ? b : a; }
FEMTILE_ORDER(int)
FEMTILE_ORDER(unsigned int)
FEMTILE_ORDER(long long)
FEMTILE_ORDER(unsigned long long)
#undef FEMTILE_ORDER

// Functions of the C library in both precisions; CUDA has overloads for float.
#define FEMTILE_MATH(name)                   \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    inline float name(float x) { return name##f(x); }
#define FEMTILE_MATH_OF_TWO(name)                    \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    inline float name(float x, float y) { return name##f(x, y); }
FEMTILE_MATH(sqrt) FEMTILE_MATH(cbrt) FEMTILE_MATH(exp) FEMTILE_MATH(exp2) FEMTILE_MATH(expm1)
FEMTILE_MATH(log) FEMTILE_MATH(log2) FEMTILE_MATH(log10) FEMTILE_MATH(log1p)
FEMTILE_MATH(sin) FEMTILE_MATH(cos) FEMTILE_MATH(tan) FEMTILE_MATH(asin) FEMTILE_MATH(acos) FEMTILE_MATH(atan)
FEMTILE_MATH(sinh) FEMTILE_MATH(cosh) FEMTILE_MATH(tanh) FEMTILE_MATH(asinh) FEMTILE_MATH(acosh) FEMTILE_MATH(atanh)
FEMTILE_MATH(erf) FEMTILE_MATH(erfc) FEMTILE_MATH(tgamma) FEMTILE_MATH(lgamma)
FEMTILE_MATH(fabs) FEMTILE_MATH(floor) FEMTILE_MATH(ceil) FEMTILE_MATH(round) FEMTILE_MATH(trunc) FEMTILE_MATH(rint)
FEMTILE_MATH_OF_TWO(pow) FEMTILE_MATH_OF_TWO(fmod) FEMTILE_MATH_OF_TWO(atan2) FEMTILE_MATH_OF_TWO(hypot)
FEMTILE_MATH_OF_TWO(fmin) FEMTILE_MATH_OF_TWO(fmax) FEMTILE_MATH_OF_TWO(copysign)
#undef FEMTILE_MATH
#undef FEMTILE_MATH_OF_TWO
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" int abs(int) noexcept;
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double abs(double x) { return fabs(x); }
inline float abs(float x) { return fabsf(x); }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
template <typename V>
inline bool isnan(V x) { return __builtin_isnan(x); }
template <typename V>
inline bool isinf(V x) { return __builtin_isinf(x); }
template <typename V>
inline bool isfinite(V x) { return __builtin_isfinite(x); }

// Arithmetic that is rounded as written; a compiler flag disables contraction.
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
