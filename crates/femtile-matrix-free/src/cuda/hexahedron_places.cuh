// Threads in a hexahedron.
#pragma once
#include "lines.cuh"

// A thread in a cell of its batch: its lines of three tensors.
struct Place {
    T *values, *along_x, *along_y;
    u32 a, b;

    __device__ inline Place(T* shared, u32 cell, u32 within) {
        values = shared + cell * TOGETHER * FIELD;
        along_x = values + TENSOR;
        along_y = along_x + TENSOR;
        a = within % Q;
        b = within / Q;
    }
    // Start of a line along the first, second and third axis.
    __device__ inline u32 x_line() const { return a * ROW + b * LAYER; }
    __device__ inline u32 y_line() const { return a + b * LAYER; }
    __device__ inline u32 z_line() const { return a + b * ROW; }
    // Whether there are nodes here, for lines and for columns.
    __device__ inline bool is_first_node() const { return a < N; }
    __device__ inline bool is_node() const { return a < N && b < N; }
};
