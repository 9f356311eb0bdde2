// A few entries of a row, loaded together so that their loads are under way at once.
#pragma once
#include "femtile.cuh"

// Stands where there is no entry.
const u32 NO_COLUMN = 0xffffffffu;

template <u32 N>
struct Batch {
    u32 column[N];
    T value[N];

    // Matrix entries pass through caches that x has a better use for.
    __device__ void load(u32 k, bool has_entry, const u32* columns, const T* values, u32 entry) {
        column[k] = has_entry ? __ldcs(columns + entry) : NO_COLUMN;
        value[k] = has_entry ? __ldcs(values + entry) : 0;
    }

    __device__ void add_to(T& sum, const T* x) const {
        T of_x[N];
#pragma unroll
        for (u32 k = 0; k < N; ++k) of_x[k] = column[k] != NO_COLUMN ? x[column[k]] : 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) sum += value[k] * of_x[k];
    }
};
