// The equations of a line as kernels that go along it read them.
#pragma once
#include "femtile.cuh"
#include "bands.cuh"
#include "lines.cuh"

// lower u_{i-1} + diagonal u_i + upper u_{i+1} = value.
struct Equation {
    T lower, diagonal, upper, value;
};

// The arrays of a batch, seen from one line.
struct Line {
    const T *d, *a, *b, *c;
    u64 stride, band_stride;
    u32 line, length;

    __device__ inline Line(const T* d, const T* a, const T* b, const T* c, const Lines& lines, u32 line)
        : d(d + lines.start(line)), a(a), b(b), c(c), stride(lines.stride), band_stride(lines.band_stride), line(line),
          length((u32)lines.length) {
        if (FEMTILE_RULE) return;
        const u64 start = lines.band_start(line);
        this->a += start;
        this->b += start;
        this->c += start;
    }

    // Row `row`; what couples an end to the other is zero unless the line is a ring.
    __device__ inline Equation equation(const Bands& bands, u32 row) const {
        Equation of;
#if FEMTILE_RULE
        bands.row(line, row, of.lower, of.diagonal, of.upper);
#else
        const u64 place = row * band_stride;
        of.lower = a[place];
        of.diagonal = b[place];
        of.upper = c[place];
#endif
        of.value = d[row * stride];
        if (!FEMTILE_PERIODIC && row == 0) of.lower = (T)0;
        if (!FEMTILE_PERIODIC && row + 1 == length) of.upper = (T)0;
        return of;
    }
};
