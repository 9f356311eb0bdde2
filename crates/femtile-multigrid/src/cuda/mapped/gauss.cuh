// Evaluation at Gauss points of a cell along lines of its nodes, and integration, its transpose.
#pragma once
#include "femtile.cuh"
#include "cells.cuh"
#include "tables.cuh"

// Nodes, and points, of a line.
const u32 N = K + 1;

struct Values {
    static __device__ inline T at(u32 point, u32 node) { return VALUES[point * N + node]; }
};

struct Slopes {
    static __device__ inline T at(u32 point, u32 other) { return SLOPES[point * N + other]; }
};

template <typename Table>
struct Transposed {
    static __device__ inline T at(u32 row, u32 column) { return Table::at(column, row); }
};

// Adds a table times a line.
template <typename Table>
__device__ inline void add_product(T (&to)[N], const T (&line)[N]) {
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
#pragma unroll
        for (u32 j = 0; j < N; ++j) to[i] += Table::at(i, j) * line[j];
    }
}

// Values at points along a line, and their slopes, from values at nodes.
__device__ inline void evaluate(T (&values)[N], T (&slopes)[N], const T* from, u32 stride) {
    T line[N];
    load_line(line, from, stride);
    add_product<Values>(values, line);
    add_product<Slopes>(slopes, values);
}

// Applies B or its transpose to a line in shared memory.
template <typename Table>
__device__ inline void transform(T* values, u32 stride) {
    T line[N], sums[N] = {};
    load_line(line, values, stride);
    add_product<Table>(sums, line);
    store_line(values, sums, stride);
}

// Applies the transposes of D to `slopes` and of B to the sum with `values`, which takes the result.
__device__ inline void integrate(T* values, const T* slopes, u32 stride) {
    T line[N], sums[N], nodes[N] = {};
    load_line(sums, values, stride);
    load_line(line, slopes, stride);
    add_product<Transposed<Slopes>>(sums, line);
    add_product<Transposed<Values>>(nodes, sums);
    store_line(values, nodes, stride);
}
