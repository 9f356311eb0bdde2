// Products of 1-D tables with lines of a tensor, which a thread holds in registers.
//
// Tables lie in constant memory and are read at places known when a kernel is compiled, so that an entry is an operand
// of the multiplication and costs no load.
#pragma once
#include "femtile.cuh"
#include "strided.cuh"

template <typename Table>
struct Transposed {
    static const u32 ROWS = Table::COLUMNS, COLUMNS = Table::ROWS;
    static __device__ inline T at(u32 row, u32 column) { return Table::at(column, row); }
};

// to_i = sum_j table_ij from_j.
template <typename Table>
__device__ inline void contract(T (&to)[Table::ROWS], const T (&from)[Table::COLUMNS]) {
#pragma unroll
    for (u32 i = 0; i < Table::ROWS; ++i) {
        T sum = Table::at(i, 0) * from[0];
#pragma unroll
        for (u32 j = 1; j < Table::COLUMNS; ++j) sum += Table::at(i, j) * from[j];
        to[i] = sum;
    }
}

// A table along one line in shared memory, and the products to another or the same place.
template <typename Table>
__device__ inline void contract_line(T* to, const T* from, u32 stride) {
    T line[Table::COLUMNS], products[Table::ROWS];
    load_line(line, from, stride);
    contract<Table>(products, line);
    store_line(to, products, stride);
}
