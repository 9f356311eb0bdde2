// The patches of two cells along each axis that a launch solves on: those with places of the same parity on each axis.
#pragma once
#include "femtile.cuh"

struct Colour {
    // Nodes from one row, and from one layer of nodes to the next.
    u64 row, layer;
    // Patches along each axis, how many cells are before the first, and cells along each axis; minus one cell before those around a
    // vertex on a lower side that is free.
    u64 counts[3], places[3], cells[3];
    // The first and the last vertex along each axis that has a patch. Parities are those of its number from the first one on.
    u64 first[3], last[3];
    // Whether colours go from the last to the first.
    u64 is_reversed;
    // What stiffness along each axis is multiplied by where cells have a width of one.
    double scales[3];

    __device__ inline u32 count() const { return (u32)(counts[0] * counts[1] * counts[2]); }
};

// One of them, by the cells before it along each axis.
struct Patch {
    u32 at[3];

    __device__ inline Patch(const Colour& colour, u32 number) {
        u32 rest = number;
#pragma unroll
        for (u32 axis = 0; axis < 3; ++axis) {
            const u32 count = (u32)colour.counts[axis];
            at[axis] = (u32)colour.places[axis] + 2 * (rest % count);
            rest /= count;
        }
    }

    // The lowest node, which is a corner, where the grid has all cells of it.
    __device__ inline u64 first(const Colour& colour) const {
        return FEMTILE_DEGREE * (at[0] + at[1] * colour.row + at[2] * colour.layer);
    }

    // Whether a cell of it is in no patch of a later colour. Colours go by their bits, so that along each axis the patch of
    // one parity comes last, if it is there.
    __device__ inline bool is_last(const Colour& colour) const {
        bool is_last = true;
#pragma unroll
        for (u32 axis = 0; axis < 3; ++axis) {
            const bool is_later = (at[axis] + 1 - (u32)colour.first[axis]) % 2 != (u32)colour.is_reversed;
            is_last = is_last && (is_later || at[axis] == 0 || at[axis] + 2 == (u32)colour.cells[axis]);
        }
        return is_last;
    }

    // Whether no other patch has the first, or the last, of its two cells along an axis.
    __device__ inline bool has_first_alone(const Colour& colour, u32 axis) const {
        return at[axis] == 0 && colour.first[axis] == 1;
    }

    __device__ inline bool has_last_alone(const Colour& colour, u32 axis) const {
        return at[axis] + 2 == (u32)colour.cells[axis] && colour.last[axis] + 1 == colour.cells[axis];
    }
};
