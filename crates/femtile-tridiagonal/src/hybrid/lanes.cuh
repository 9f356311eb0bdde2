// A system with one row a lane, by parallel cyclic reduction: [laszlo2016], Alg. 2 and 4.
//
// `lanes` neighbours of a warp share a system, a power of two; all lanes of the warp take part.
#pragma once
#include "chunk.cuh"

struct Ends {
    T before, s;  // the row of the lane before (in a ring the last before the first), and the lane's own
    u32 bad;      // the first row that failed in any lane
};

// Row `lane` of a system of `length` rows, the others beyond its end; `bad` is what failed before, or SOUND.
//
// Of lanes whose system failed nothing is a number.
template <u32 LANES>
__device__ inline Ends solve_lanes(const Equation& of, u32 lane, u32 length, u32 bad, u32 row) {
    const T own = reciprocal(of.diagonal);
    T d = own * of.value, a = own * of.lower, c = own * of.upper;
    if (!is_sound(of.diagonal, (T)1)) bad = lesser(bad, row);
#if FEMTILE_PERIODIC
    // In a ring the last unknown w is set apart: s = d - q w. Its own row is kept for the end.
    const u32 end = length - 1;
    const Reduced last = {d, a, c};
    T q = lane == 0 ? a : (T)0;
    if (lane == 0) a = (T)0;
    if (lane >= end) {
        d = a = c = (T)0;
        q = (T)-1;
    }
#endif
#pragma unroll
    for (u32 s = 1; s < LANES; s *= 2) {
        const T a_before = __shfl_up_sync(FULL_WARP, a, s, LANES), a_behind = __shfl_down_sync(FULL_WARP, a, s, LANES);
        const T c_before = __shfl_up_sync(FULL_WARP, c, s, LANES), c_behind = __shfl_down_sync(FULL_WARP, c, s, LANES);
        const T d_before = __shfl_up_sync(FULL_WARP, d, s, LANES), d_behind = __shfl_down_sync(FULL_WARP, d, s, LANES);
        const T pivot = (T)1 - a * c_before - c * a_behind;
        const T r = reciprocal(pivot);
        d = r * (d - a * d_before - c * d_behind);
#if FEMTILE_PERIODIC
        const T q_before = __shfl_up_sync(FULL_WARP, q, s, LANES), q_behind = __shfl_down_sync(FULL_WARP, q, s, LANES);
        q = r * (q - a * q_before - c * q_behind);
#endif
        a = -(r * a) * a_before;
        c = -(r * c) * c_behind;
        if (!is_sound(pivot, (T)1)) bad = lesser(bad, row);
    }
#if FEMTILE_PERIODIC
    const u32 before_end = end == 0 ? 0 : end - 1;
    const T d_end = __shfl_sync(FULL_WARP, d, before_end, LANES), d_0 = __shfl_sync(FULL_WARP, d, 0, LANES);
    const T q_end = __shfl_sync(FULL_WARP, q, before_end, LANES), q_0 = __shfl_sync(FULL_WARP, q, 0, LANES);
    const T pivot = (T)1 - last.a * q_end - last.c * q_0;
    const T w = reciprocal(pivot) * (last.d - last.a * d_end - last.c * d_0);
    if (lane == end && !is_sound(pivot, (T)1)) bad = lesser(bad, row);
    d -= q * __shfl_sync(FULL_WARP, w, end, LANES);
#endif
    if (!is_finite(d)) bad = lesser(bad, row);
#pragma unroll
    for (u32 s = LANES / 2; s > 0; s /= 2) bad = lesser(bad, __shfl_xor_sync(FULL_WARP, bad, s, LANES));
    if (bad != SOUND) d = not_a_number();
    T before = __shfl_up_sync(FULL_WARP, d, 1, LANES);
#if FEMTILE_PERIODIC
    const T around = __shfl_sync(FULL_WARP, d, end, LANES);
    if (lane == 0) before = around;
#else
    if (lane == 0) before = bad == SOUND ? (T)0 : d;
#endif
    return {before, d, bad};
}

// The last rows of the chunks of a system, one chunk a lane.
template <u32 LANES>
__device__ inline Ends solve_chunks(const Reduced& last, const Reduced& first, T wrap, u32 chunk, u32 n_chunks, u32 bad, u32 row) {
    Reduced next = {
        __shfl_down_sync(FULL_WARP, first.d, 1, LANES),
        __shfl_down_sync(FULL_WARP, first.a, 1, LANES),
        __shfl_down_sync(FULL_WARP, first.c, 1, LANES),
    };
#if FEMTILE_PERIODIC
    const Reduced first_0 = {
        __shfl_sync(FULL_WARP, first.d, 0, LANES),
        __shfl_sync(FULL_WARP, first.a, 0, LANES),
        __shfl_sync(FULL_WARP, first.c, 0, LANES),
    };
    const bool is_end = chunk + 1 == n_chunks;
    const Equation of = reduced_equation({last.d, last.a, is_end ? wrap : last.c}, is_end ? first_0 : next);
#else
    if (chunk + 1 == LANES) next = {(T)0, (T)0, (T)0};
    const Equation of = reduced_equation(last, next);
#endif
    return solve_lanes<LANES>(chunk < n_chunks ? of : beyond_end(), chunk, n_chunks, bad, row);
}
