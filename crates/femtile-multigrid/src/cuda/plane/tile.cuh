// A tile of cells of a box in the plane, with the cells before it along both axes, which share its first nodes. A block
// computes the products of all these cells and sums them at the nodes of the tile, each of which it alone writes.
#pragma once
#include "femtile.cuh"
#include "cells.cuh"

// Own cells, all cells, and their nodes along each axis. Odd strides in shared memory avoid bank conflicts.
const u32 OWN_X = FEMTILE_TILE_X, OWN_Y = FEMTILE_TILE_Y, CELLS_X = OWN_X + 1, CELLS_Y = OWN_Y + 1;
const u32 NODES_X = K * CELLS_X + 1, NODES_Y = K * CELLS_Y + 1, WIDTH = NODES_X | 1;
// Values at the nodes of a cell, two arrays per cell, and lines of all cells along an axis.
const u32 ROW = (K + 1) | 1, SQUARE = (K + 1) * ROW, OF_CELL = (2 * SQUARE) | 1, N_LINES = CELLS_X * CELLS_Y * (K + 1);

struct Tile {
    // The first cell, which may lie before the grid, and the cells of the grid.
    int at_x, at_y, n_x, n_y;
    u64 row;
    // Values at all nodes, and of each cell.
    T *values, *of_cells;

    __device__ inline Tile(const Cells& cells, T* shared) {
        const Cell first(cells, blockIdx.x);
        at_x = (int)first.at[0] - 1;
        at_y = (int)first.at[1] - 1;
        n_x = (int)cells.cells[0];
        n_y = (int)cells.cells[1];
        row = K * cells.cells[0] + 1;
        values = shared;
        of_cells = shared + NODES_Y * WIDTH;
    }

    // Reads the values at all nodes; zero outside the grid.
    __device__ inline void load(const T* x) const {
        for (u32 i = threadIdx.x; i < NODES_X * NODES_Y; i += FEMTILE_THREADS) {
            const int node_x = (int)K * at_x + (int)(i % NODES_X), node_y = (int)K * at_y + (int)(i / NODES_X);
            const bool is_there = node_x >= 0 && node_y >= 0 && node_x <= (int)K * n_x && node_y <= (int)K * n_y;
            values[i % NODES_X + i / NODES_X * WIDTH] = is_there ? __ldg(x + (u64)node_x + (u64)node_y * row) : (T)0;
        }
    }

    // Starts from b, or zero, and subtracts the products of the cells with each node; zero at Dirichlet nodes.
    __device__ inline void store(T* r, const T* b, const Cells& cells) const {
        for (u32 i = threadIdx.x; i < (NODES_X - K) * (NODES_Y - K); i += FEMTILE_THREADS) {
            const u32 x = K + i % (NODES_X - K), y = K + i / (NODES_X - K);
            const int node_x = (int)K * at_x + (int)x, node_y = (int)K * at_y + (int)y;
            // The last nodes belong to the next tile, or to the last one.
            const bool has_x = x + 1 < NODES_X ? node_x <= (int)K * n_x : node_x == (int)K * n_x;
            const bool has_y = y + 1 < NODES_Y ? node_y <= (int)K * n_y : node_y == (int)K * n_y;
            if (!has_x || !has_y) continue;
            const u64 node = (u64)node_x + (u64)node_y * row;
            const bool is_given = node_x < (int)cells.lowest[0] || node_x > (int)cells.highest[0]
                || node_y < (int)cells.lowest[1] || node_y > (int)cells.highest[1];
            r[node] = is_given ? (T)0 : (b ? __ldg(b + node) : (T)0) - sum(x, y);
        }
    }

    // The sum of the products of the cells with a node.
    __device__ inline T sum(u32 x, u32 y) const {
        T sum = 0;
#pragma unroll
        for (u32 back_y = 0; back_y < 2; ++back_y) {
#pragma unroll
            for (u32 back_x = 0; back_x < 2; ++back_x) {
                const u32 a = x / K - back_x, b = y / K - back_y, i = x % K + back_x * K, j = y % K + back_y * K;
                if (i <= K && j <= K && a < CELLS_X && b < CELLS_Y) sum += of_cells[(a + b * CELLS_X) * OF_CELL + i + j * ROW];
            }
        }
        return sum;
    }
};

// A line of a cell of a tile.
struct TileLine {
    u32 own, number, a, b;

    __device__ inline explicit TileLine(u32 line) : own(line % (K + 1)), number(line / (K + 1)) {
        a = number % CELLS_X;
        b = number / CELLS_X;
    }

    // The values of the tile along a row of the cell.
    __device__ inline const T* row(const Tile& tile) const { return tile.values + K * a + (K * b + own) * WIDTH; }
    // The arrays of the cell.
    __device__ inline T* first(const Tile& tile) const { return tile.of_cells + number * OF_CELL; }
    __device__ inline T* second(const Tile& tile) const { return first(tile) + SQUARE; }
    // Whether the grid has the cell, its indices and its number.
    __device__ inline bool is_there(const Tile& tile) const {
        return x(tile) >= 0 && y(tile) >= 0 && x(tile) < tile.n_x && y(tile) < tile.n_y;
    }
    __device__ inline int x(const Tile& tile) const { return tile.at_x + (int)a; }
    __device__ inline int y(const Tile& tile) const { return tile.at_y + (int)b; }
    __device__ inline u64 cell(const Tile& tile) const { return (u64)x(tile) + (u64)y(tile) * (u64)tile.n_x; }
};
