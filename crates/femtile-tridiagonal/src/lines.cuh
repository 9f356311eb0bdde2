// The lines of an array along one axis, and the note of those that could not be solved.
#pragma once
#include "femtile.cuh"

const u32 LINE_AXES = 3;
const u32 SOUND = 0xffffffffu;

// The axes beside that of the lines stand fastest first; there are less than 2^32 lines.
struct Lines {
    u64 length, stride, band_stride, n_lines, n_axes;
    u64 count[LINE_AXES], step[LINE_AXES], band_step[LINE_AXES];

    // Where a line begins, and where its bands do.
    __device__ inline u64 start(u32 line) const { return sum(line, step); }
    __device__ inline u64 band_start(u32 line) const { return sum(line, band_step); }

    __device__ inline u64 sum(u32 line, const u64* steps) const {
        u64 place = 0;
        if (n_axes > 1) {
            place = line % (u32)count[0] * steps[0];
            line /= (u32)count[0];
        }
        if (n_axes > 2) {
            place += line % (u32)count[1] * steps[1];
            line /= (u32)count[1];
        }
        return place + line * (n_axes == 1 ? steps[0] : n_axes == 2 ? steps[1] : steps[2]);
    }
};

__device__ inline u32 lesser(u32 x, u32 y) { return x < y ? x : y; }

// The fill value of a line that failed.
__device__ inline T not_a_number() {
    const T zero = (T)0;
    return zero / zero;
}

__device__ inline bool is_finite(T value) {
    return fabs(value) <= (T)(sizeof(T) == 8 ? 1.7976931348623157e308 : 3.4028234663852886e38);
}

// Whether a pivot is more than the rounding of the diagonal entry it came from.
__device__ inline bool is_sound(T pivot, T diagonal) {
    return fabs(pivot) > (T)(sizeof(T) == 8 ? 2.220446049250313e-16 : 1.1920928955078125e-7) * fabs(diagonal);
}

// Notes a line that failed at `row`; called by one thread for it.
__device__ inline void note_failure(u64* status, const Lines& lines, u64 line, u32 row) {
    atomicAdd(&status[0], 1ull);
    atomicMin(&status[1], line * lines.length + lesser(row, (u32)lines.length - 1));
}
