// Tables of an element with its points, and how tensors lie in shared memory.
#pragma once
#include "femtile.cuh"
#include "contract.cuh"
#include "tables.cuh"

// Nodes and points along an axis, and points of a layer.
const u32 P = FEMTILE_DEGREE, N = P + 1, Q = FEMTILE_POINTS, LAYER_POINTS = Q * Q;

// Where entry (x, y, z) of a tensor lies in shared memory: x + ROW y + LAYER z. Rows are odd, so that neighbours that
// read a row each, with y fastest, meet in no bank.
const u32 ROW = Q | 1, LAYER = Q * ROW, TENSOR = Q * LAYER;

// Whether there are registers for what is read before it is needed.
const bool IS_EAGER = Q < 11;

struct Values {
    static const u32 ROWS = Q, COLUMNS = N;
    static __device__ inline T at(u32 point, u32 node) { return VALUES[point * N + node]; }
};

struct Slopes {
    static const u32 ROWS = Q, COLUMNS = Q;
    static __device__ inline T at(u32 point, u32 other) { return SLOPES[point * Q + other]; }
};
