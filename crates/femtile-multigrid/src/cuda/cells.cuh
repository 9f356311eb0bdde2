// The cells of a launch, a team of threads each, and ownership of nodes by the first cell that has them.
#pragma once
#include "femtile.cuh"
#include "strided.cuh"

const u32 K = FEMTILE_DEGREE;

// Every `steps`-th cell from `places` on: counts along each axis. Nodes with unknowns along an axis are those from
// `lowest` to `highest`.
struct Cells {
    u64 counts[3], places[3], steps[3], cells[3], lowest[3], highest[3];

    __device__ inline u32 count() const { return (u32)(counts[0] * counts[1] * counts[2]); }
};

// One cell. Neighbours differ in parity along an axis; even cells come first.
struct Cell {
    u32 at[3];

    __device__ inline Cell(const Cells& cells, u32 number) {
        u32 rest = number;
#pragma unroll
        for (u32 axis = 0; axis < 3; ++axis) {
            const u32 count = (u32)cells.counts[axis];
            at[axis] = (u32)cells.places[axis] + (u32)cells.steps[axis] * (rest % count);
            rest /= count;
        }
    }

    // The number of the cell in the grid.
    __device__ inline u64 number(const Cells& cells) const {
        return at[0] + cells.cells[0] * (at[1] + cells.cells[1] * at[2]);
    }

    // Whether, along this axis, no earlier cell has the node.
    __device__ inline bool is_first(const Cells& cells, u32 axis, u32 node) const {
        return (node > 0 && node < K) || at[axis] % 2 == 0 || (node == K && at[axis] + 1 == (u32)cells.cells[axis]);
    }

    // Whether, along this axis, the node is a Dirichlet node.
    __device__ inline bool is_given(const Cells& cells, u32 axis, u32 node) const {
        const u32 place = K * at[axis] + node;
        return place < (u32)cells.lowest[axis] || place > (u32)cells.highest[axis];
    }

    // Whether the cell is the last along an axis with a free upper side.
    __device__ inline bool is_last_and_free(const Cells& cells, u32 axis) const {
        return at[axis] + 1 == (u32)cells.cells[axis] && K * (at[axis] + 1) == (u32)cells.highest[axis];
    }
};

// Nodes of a grid: row and layer strides, and the first node of a cell.
struct Nodes {
    u64 row, layer, first;

    __device__ inline Nodes(const Cells& cells, const Cell& cell, u32 n_x, u32 n_y, u32 n_z) {
        row = n_x * cells.cells[0] + 1;
        layer = row * (n_y * cells.cells[1] + 1);
        first = n_x * cell.at[0] + n_y * cell.at[1] * row + n_z * cell.at[2] * layer;
    }
};
