// Tables of an element at its points, and the layout of tensors in shared memory.
#pragma once
#include "femtile.cuh"
#include "contract.cuh"
#include "tables.cuh"

// Axes, nodes and points along each, and points of a layer across the last axis: one per column.
const u32 DIMENSION = FEMTILE_DIMENSION, P = FEMTILE_DEGREE, N = P + 1, Q = FEMTILE_POINTS;
const u32 LAYER_POINTS = DIMENSION == 3 ? Q * Q : Q;

// Components of a field, whose values at a node are consecutive, and those that are computed at the same time, for which the
// metric is read once.
const u32 COMPONENTS = FEMTILE_COMPONENTS, TOGETHER = FEMTILE_TOGETHER;

// Entry (x, y, z) of a tensor in shared memory: x + ROW y + LAYER z, with z absent in two dimensions. Rows are odd, so that
// neighbours that read a row each, with y fastest, have no bank conflicts. A column has the stride COLUMN.
const u32 ROW = Q | 1, LAYER = Q * ROW, COLUMN = DIMENSION == 3 ? LAYER : ROW, TENSOR = Q * COLUMN;

// Tensors of a component. On hexahedra values and slopes along two axes; of several components, and of forms, slopes along the
// third axis lie there too, in place of the values where these are not wanted any more. On quadrilaterals values and slopes
// likewise, of any number of components.
const u32 TENSORS = DIMENSION == 3 && TOGETHER == 1 && !FEMTILE_TANGENT ? 3 : FEMTILE_STIFFNESS ? DIMENSION + FEMTILE_MASS : 1;
const u32 FIELD = TENSORS * TENSOR;

// Calls `act` with the start of the tensors of each component, one after the other.
template <typename Act>
__device__ inline void for_fields(const Act& act) {
#pragma unroll 1
    for (u32 field = 0; field < TOGETHER * FIELD; field += FIELD) act(field);
}

// Whether enough registers are left to prefetch.
const bool IS_EAGER = Q < 11;

// Whether enough are left to read the sums of earlier batches ahead of time.
const bool READS_AHEAD = TOGETHER == 1 ? IS_EAGER : TOGETHER * N <= 18;

struct Values {
    static const u32 ROWS = Q, COLUMNS = N;
    static __device__ inline T at(u32 point, u32 node) { return VALUES[point * N + node]; }
};

struct Slopes {
    static const u32 ROWS = Q, COLUMNS = Q;
    static __device__ inline T at(u32 point, u32 other) { return SLOPES[point * Q + other]; }
};
