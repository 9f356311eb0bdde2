// Cyclic reduction in shared memory, a block of threads a system: parallel, [laszlo2016], Alg. 2, or in two sweeps,
// section 2.2. For comparison.
//
// Rows are scaled to unit diagonals first. Every value is read and written once: 5 N values a system.
#include "equation.cuh"
#include "femtile.cuh"
#include "reciprocal.cuh"

typedef int i32;

// One scaled row: a u_{i-s} + u_i + c u_{i+s} = d.
struct Row {
    T a, c, d;
};

__device__ inline Row read_row(const T* rows, u32 length, i32 i) {
    if (i < 0 || i >= (i32)length) return {(T)0, (T)0, (T)0};
    return {rows[i], rows[length + i], rows[2 * length + i]};
}

__device__ inline void write_row(T* rows, u32 length, u32 i, const Row& row) {
    rows[i] = row.a;
    rows[length + i] = row.c;
    rows[2 * length + i] = row.d;
}

// Row i with its neighbours at a distance of s put in.
__device__ inline Row reduce(const T* rows, u32 length, u32 i, u32 s, u32* bad) {
    const Row own = read_row(rows, length, (i32)i), before = read_row(rows, length, (i32)(i - s)),
              behind = read_row(rows, length, (i32)(i + s));
    const T pivot = (T)1 - own.a * before.c - own.c * behind.a;
    const T r = reciprocal(pivot);
    const T d = r * (own.d - own.a * before.d - own.c * behind.d);
    if (!is_sound(pivot, (T)1) || !is_finite(d)) atomicMin(bad, i);
    return {-(r * own.a) * before.a, -(r * own.c) * behind.c, d};
}

extern "C" __global__ void tridiagonal_pcr(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands) {
    FEMTILE_DYNAMIC_SHARED(T, rows);
    FEMTILE_SHARED u32 bad;
    const Line line(d, a, b, c, lines, blockIdx.x);
    const u32 length = line.length;
    T* const to = u + lines.start(blockIdx.x);
    if (threadIdx.x == 0) bad = SOUND;
    __syncthreads();
    for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
        const Equation of = line.equation(bands, i);
        const T r = reciprocal(of.diagonal);
        write_row(rows, length, i, {r * of.lower, r * of.upper, r * of.value});
        const bool is_scaled = fabs(of.diagonal) > (T)0 && is_finite(of.diagonal) && is_finite(r * of.value);
        if (!is_scaled || !is_finite(r * of.upper)) atomicMin(&bad, i);
    }
    __syncthreads();
#if FEMTILE_SWEEPS
    u32 s = 1;
    for (; s < length; s *= 2) {
        for (u32 i = 2 * s - 1 + threadIdx.x * 2 * s; i < length; i += blockDim.x * 2 * s) {
            write_row(rows, length, i, reduce(rows, length, i, s, &bad));
        }
        __syncthreads();
    }
    for (s /= 2; s > 0; s /= 2) {
        for (u32 i = s - 1 + threadIdx.x * 2 * s; i < length; i += blockDim.x * 2 * s) {
            const Row own = read_row(rows, length, (i32)i);
            const T before = read_row(rows, length, (i32)(i - s)).d, behind = read_row(rows, length, (i32)(i + s)).d;
            rows[2 * length + i] = own.d - own.a * before - own.c * behind;
        }
        __syncthreads();
    }
#else
    T* from = rows;
    T* into = rows + 3 * length;
    for (u32 s = 1; s < length; s *= 2) {
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            write_row(into, length, i, reduce(from, length, i, s, &bad));
        }
        __syncthreads();
        T* const swapped = from;
        from = into;
        into = swapped;
    }
    rows = from;
#endif
    for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
        to[i * line.stride] = bad == SOUND ? rows[2 * length + i] : not_a_number();
    }
    if (threadIdx.x == 0 && bad != SOUND) note_failure(status, lines, blockIdx.x, bad);
}
