// M threads share a block row, thread j holds column j of its blocks: [laszlo2016], Fig. 16.
//
// A warp has 32 / M groups of M lanes. Lanes that are left over repeat columns of the last group, so that all lanes
// meet at every exchange, and write nothing. Vectors stand whole in every thread of a group.
#pragma once
#include "femtile.cuh"

const u32 M = FEMTILE_M;
const u32 GROUPS = WARP / M;   // of a warp
const T EPSILON = sizeof(T) == 8 ? T(2.220446049250313e-16) : T(1.1920928955078125e-7);
const u32 NO_ROW = 0xffffffffu;

// Which group of its warp a thread belongs to, and which column it holds.
struct Place {
    u32 group, column;
    bool is_spare;

    __device__ inline Place() {
        const u32 lane = threadIdx.x % WARP;
        is_spare = lane >= GROUPS * M;
        group = is_spare ? GROUPS - 1 : lane / M;
        column = lane % M;
    }
};

// The entry of a column that stands in a register with a number known at run time only.
__device__ inline T entry_of(const T (&column)[M], u32 row) {
    T entry = column[0];
#pragma unroll
    for (u32 i = 1; i < M; ++i) entry = i == row ? column[i] : entry;
    return entry;
}

__device__ inline void exchange_rows(T (&column)[M], u32 k, u32 other) {
    const T upper = column[k];
    column[k] = entry_of(column, other);
#pragma unroll
    for (u32 i = 0; i < M; ++i) column[i] = i == other && other != k ? upper : column[i];
}

// Exchange of values between the threads of a group by register shuffles.
struct ByShuffle {
    u32 first;   // lane of the group

    __device__ inline explicit ByShuffle(const Place& place) : first(place.group * M) {}

    // The value that thread k of the group has.
    __device__ inline T from(T value, u32 k) const { return __shfl_sync(FULL_WARP, value, int(first + k)); }

    // Column k, from the thread that holds it.
    __device__ inline void column(T (&all)[M], const T (&own)[M], u32 k) {
#pragma unroll
        for (u32 i = 0; i < M; ++i) all[i] = from(own[i], k);
    }

    // The values of all threads, in their order.
    __device__ inline void gather(T (&all)[M], T own) {
#pragma unroll
        for (u32 k = 0; k < M; ++k) all[k] = from(own, k);
    }
};

// Exchange of values between the threads of a group by shared memory: double-buffered places for M values each.
//
// A place is written again only after an exchange through the other one, at which all lanes met.
struct ByShared {
    T* values;   // of the group
    u32 turn, own_column;
    bool is_spare;

    __device__ inline ByShared(const Place& place, T* of_warp)
        : values(of_warp + place.group * 2 * M), turn(0), own_column(place.column), is_spare(place.is_spare) {}

    __device__ inline void read(T (&all)[M]) {
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < M; ++i) all[i] = values[turn * M + i];
        turn ^= 1;
    }

    __device__ inline void column(T (&all)[M], const T (&own)[M], u32 k) {
        if (own_column == k && !is_spare) {
#pragma unroll
            for (u32 i = 0; i < M; ++i) values[turn * M + i] = own[i];
        }
        read(all);
    }

    __device__ inline void gather(T (&all)[M], T own) {
        if (!is_spare) values[turn * M + own_column] = own;
        read(all);
    }
};

// Solves W [X | x] = [R | r] by Gauss-Jordan elimination; R, of N columns a thread, and r become the solutions.
//
// `diagonal` is the entry of the diagonal that the pivot of the thread's column came from. False where that pivot is
// not finite or not larger than the rounding of that entry (with pivoting: zero), or an entry of x is not finite.
template <typename Exchange, u32 N>
__device__ inline bool eliminate(Exchange& exchange, u32 own_column, T (&w)[M], T diagonal, T (&right)[N][M],
                                 T (&r)[M]) {
    bool is_sound = true;
#pragma unroll
    for (u32 k = 0; k < M; ++k) {
        T factors[M];
        exchange.column(factors, w, k);
#if FEMTILE_PIVOTED
        u32 chosen = k;
        T largest = fabs(factors[k]);
#pragma unroll
        for (u32 i = k + 1; i < M; ++i) {
            if (fabs(factors[i]) > largest) {
                chosen = i;
                largest = fabs(factors[i]);
            }
        }
        exchange_rows(factors, k, chosen);
        exchange_rows(w, k, chosen);
#pragma unroll
        for (u32 n = 0; n < N; ++n) exchange_rows(right[n], k, chosen);
        exchange_rows(r, k, chosen);
        const T least = T(0);
#else
        const T least = EPSILON * fabs(diagonal);
#endif
        const T pivot = factors[k];
        if (own_column == k) is_sound = is_sound && fabs(pivot) > least && isfinite(pivot);
        const T inverse = T(1) / pivot;
        w[k] *= inverse;
        r[k] *= inverse;
#pragma unroll
        for (u32 n = 0; n < N; ++n) right[n][k] *= inverse;
#pragma unroll
        for (u32 i = 0; i < M; ++i) {
            if (i == k) continue;
            w[i] -= factors[i] * w[k];
            r[i] -= factors[i] * r[k];
#pragma unroll
            for (u32 n = 0; n < N; ++n) right[n][i] -= factors[i] * right[n][k];
        }
    }
    // Zero times a number is zero, or not a number where that is not finite.
    T zeros = T(0);
#pragma unroll
    for (u32 i = 0; i < M; ++i) zeros += T(0) * r[i];
    return is_sound && zeros == T(0);
}
