// A chunk of consecutive rows of a system, held by one thread in registers.
//
// Every row comes to depend on the last row s of its chunk and on that of the chunk before, s':
//
//     u_i = d_i - a_i s' - c_i u_{i+1},        u_0 = D - A s' - C s,
//
// and the last rows of all chunks form a tridiagonal system of their own. In a ring (FEMTILE_PERIODIC) the first row
// of a system is coupled to its last and the last to the first; chunks that reach beyond the end repeat the last row.
//
// [laszlo2016], Alg. 3 and 5. Differs: one unknown a chunk is left instead of two, and rows are not eliminated upwards.
#pragma once
#include "lines.cuh"
#include "reciprocal.cuh"

const bool PERIODIC = FEMTILE_PERIODIC;

// lower u_{i-1} + diagonal u_i + upper u_{i+1} = value.
struct Equation {
    T lower, diagonal, upper, value;
};

// The value beyond the end of a system: zero, or in a ring the row before.
__device__ inline Equation beyond_end() { return {PERIODIC ? (T)-1 : (T)0, (T)1, (T)0, (T)0}; }

// The first or the last row of a chunk: d - a s' - c s, or d - a s' - c u with u the first row of the next chunk.
struct Reduced {
    T d, a, c;
};

// The equation of the last row of a chunk once the first row behind it, `next`, is put in.
__device__ inline Equation reduced_equation(const Reduced& last, const Reduced& next) {
    return {last.a, (T)1 - last.c * next.a, -last.c * next.c, last.d - last.c * next.d};
}

template <u32 ROWS>
struct Chunk {
    T d[ROWS], a[ROWS], c[ROWS];
    T wrap;   // what couples the last row of a ring to the first
    u32 bad;  // the first row that failed, or SOUND

    __device__ inline void begin() {
        wrap = (T)0;
        bad = SOUND;
    }

    // Takes the equation of row i of the chunk, which is `row` of a system of `length` rows.
    __device__ inline void eliminate(u32 i, u32 row, u32 length, const Equation& of) {
        const T pivot = i == 0 ? of.diagonal : of.diagonal - of.lower * c[i - 1];
        const T r = reciprocal(pivot);
        const T lower = r * of.lower;
        d[i] = i == 0 ? r * of.value : r * of.value - lower * d[i - 1];
        a[i] = i == 0 ? lower : -lower * a[i - 1];
        c[i] = r * of.upper;
        if (PERIODIC && row + 1 == length) {
            wrap = c[i];
            c[i] = (T)0;
        }
        if (!(is_sound(pivot, of.diagonal) && is_finite(c[i]))) bad = lesser(bad, row);
    }

    // The last row, which what failed before has made a number no more.
    __device__ inline Reduced last(u32 row_0) {
        if (!is_finite(d[ROWS - 1])) {
#pragma unroll
            for (u32 i = 0; i < ROWS; ++i) {
                if (!is_finite(d[i])) bad = lesser(bad, row_0 + i);
            }
        }
        return {d[ROWS - 1], a[ROWS - 1], c[ROWS - 1]};
    }

    // The first row. In a ring the last row of the system and what follows are s.
    __device__ inline Reduced first(u32 row_0, u32 length) const {
        Reduced of = {(T)0, (T)0, (T)-1};
#pragma unroll
        for (u32 k = 1; k < ROWS; ++k) {
            const u32 i = ROWS - 1 - k;
            if (PERIODIC && row_0 + i + 1 >= length) continue;
            of = {d[i] - c[i] * of.d, a[i] - c[i] * of.a, -c[i] * of.c};
        }
        return of;
    }

    // The value of row i from that of row i + 1, s' and s.
    __device__ inline T substitute(u32 i, u32 row, u32 length, T next, T before, T s) const {
        if (i + 1 == ROWS || (PERIODIC && row + 1 >= length)) return s;
        return d[i] - a[i] * before - c[i] * next;
    }
};
