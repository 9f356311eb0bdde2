// The vertex patches of one colour, two cells along each axis: indices of the same parity along each axis.
#pragma once
#include "femtile.cuh"

struct Colour {
    // Row and layer strides of nodes.
    u64 row, layer;
    // Patches along each axis, cells before the first, and cells of the grid; at a lower free side there are -1 cells
    // before the first.
    u64 counts[3], places[3], cells[3];
    // The first and the last vertex with a patch along each axis. Parities count from the first one.
    u64 first[3], last[3];
    // Whether colours are processed last to first.
    u64 is_reversed;
    // Factors of stiffness along each axis relative to cells of width one.
    double scales[3];

    __device__ inline u32 count() const { return (u32)(counts[0] * counts[1] * counts[2]); }
};

// One patch, by the cells before it along each axis.
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

    // The lowest corner node, for patches inside the grid.
    __device__ inline u64 first(const Colour& colour) const {
        return FEMTILE_DEGREE * (at[0] + at[1] * colour.row + at[2] * colour.layer);
    }

    // Whether some cell is in no patch of a later colour. The bits of a colour are its parities, so along each axis the
    // patch of one parity comes last, if it exists.
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
