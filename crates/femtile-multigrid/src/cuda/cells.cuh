// The cells that a launch takes, a team of threads each, and whether a cell is the first one to have a node.
#pragma once
#include "femtile.cuh"
#include "strided.cuh"

const u32 K = FEMTILE_DEGREE;

// Of all cells those at `places` and at every so many from there on: how many along each axis. Of the nodes along an axis those
// from the lowest to the highest have unknowns.
struct Cells {
    u64 counts[3], places[3], steps[3], cells[3], lowest[3], highest[3];

    __device__ inline u32 count() const { return (u32)(counts[0] * counts[1] * counts[2]); }
};

// One of them. Neighbours differ in parity along an axis, and even places come first.
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

    // Whether nodes with this place in the cell along an axis were not met before, as far as this axis tells.
    __device__ inline bool is_first(const Cells& cells, u32 axis, u32 node) const {
        return (node > 0 && node < K) || at[axis] % 2 == 0 || (node == K && at[axis] + 1 == (u32)cells.cells[axis]);
    }

    // Whether nodes with this place have values that are given, as far as this axis tells.
    __device__ inline bool is_given(const Cells& cells, u32 axis, u32 node) const {
        const u32 place = K * at[axis] + node;
        return place < (u32)cells.lowest[axis] || place > (u32)cells.highest[axis];
    }

    // Whether no cell comes after it along an axis and the side behind it is free.
    __device__ inline bool is_last_and_free(const Cells& cells, u32 axis) const {
        return at[axis] + 1 == (u32)cells.cells[axis] && K * (at[axis] + 1) == (u32)cells.highest[axis];
    }
};

// Nodes of a grid of cells with so many nodes along each axis, one shared: its rows, its layers and the lowest node of a cell.
struct Nodes {
    u64 row, layer, first;

    __device__ inline Nodes(const Cells& cells, const Cell& cell, u32 n_x, u32 n_y, u32 n_z) {
        row = n_x * cells.cells[0] + 1;
        layer = row * (n_y * cells.cells[1] + 1);
        first = n_x * cell.at[0] + n_y * cell.at[1] * row + n_z * cell.at[2] * layer;
    }
};
