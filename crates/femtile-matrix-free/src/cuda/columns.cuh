// Columns of nodes along the last axis of a cell, one per thread.
//
// The unknowns of an entity (vertex, edge, face, interior) are consecutive; a column meets three entities: below,
// inside, above. In two dimensions columns have y = 0.
#pragma once
#include "femtile.cuh"

// Stands for no unknown and no list.
const u32 NOTHING = 0xffffffffu;

// A column of elements of a degree: its lowest entity, its place there, the stride of its inner unknowns, and its
// lowest node.
template <u32 DEGREE>
struct EntityColumn {
    u32 entity, offset, stride, node;

    __device__ inline EntityColumn(u32 x, u32 y) {
        const u32 digit_x = digit(x), digit_y = digit(y);
        const u32 width = digit_x == 1 ? DEGREE - 1 : 1;
        entity = digit_x + 3 * digit_y;
        offset = (digit_x == 1 ? x - 1 : 0) + (digit_y == 1 ? (y - 1) * width : 0);
        stride = width * (digit_y == 1 ? DEGREE - 1 : 1);
        node = x + (DEGREE + 1) * y;
    }

    static __device__ inline u32 digit(u32 i) { return i == 0 ? 0 : i == DEGREE ? 2 : 1; }

    // Place of node k in its entity, for a regular cell.
    __device__ inline u32 place_of(u32 k) const { return offset + (k > 0 && k < DEGREE ? (k - 1) * stride : 0); }
};
