// Where entry (row, column) of a tile lies in shared memory, so that neither rows nor columns meet in one bank.
//
// Rows are padded by one entry. There are 32 banks of 4 bytes: 32 neighbours of a row or of a column then lie in
// different ones, of entries of 8 bytes the 16 that are read at once.
#pragma once
#include "femtile.cuh"

template <u32 ROWS, u32 COLUMNS>
struct PaddedTile {
    static const u32 SIZE = ROWS * (COLUMNS + 1);
    static __device__ inline u32 place(u32 row, u32 column) { return row * (COLUMNS + 1) + column; }
};
