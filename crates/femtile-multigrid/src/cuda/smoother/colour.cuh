// The patches of two cells along each axis that a launch solves on: those with places of the same parity on each axis.
#pragma once
#include "femtile.cuh"

struct Colour {
    // Nodes from one row, and from one layer of nodes to the next.
    u64 row, layer;
    // Patches along each axis, where the first stands, and cells along each axis.
    u64 counts[3], places[3], cells[3];
    // Whether colours go from the last to the first.
    u64 is_reversed;
    // What stiffness along each axis is multiplied by where cells have a width of one.
    double scales[3];

    __device__ inline u32 n_patches() const { return (u32)(counts[0] * counts[1] * counts[2]); }
};

// One of them.
struct Patch {
    // The lowest node, which is a corner.
    u64 first;
    // Whether a cell of it is in no patch of a later colour.
    bool is_last;

    __device__ inline Patch(const Colour& colour, u32 patch) : first(0), is_last(true) {
        const u64 strides[3] = {1, colour.row, colour.layer};
        u32 rest = patch;
#pragma unroll
        for (u32 axis = 0; axis < 3; ++axis) {
            const u32 count = (u32)colour.counts[axis], parity = (u32)colour.places[axis];
            const u32 place = parity + 2 * (rest % count);
            rest /= count;
            first += (u64)(FEMTILE_DEGREE * place) * strides[axis];
            // Colours go by their bits, so that along each axis the patch of one parity comes last, if it is there.
            const bool is_later = parity != (u32)colour.is_reversed;
            is_last = is_last && (is_later || place == 0 || place + 2 == (u32)colour.cells[axis]);
        }
    }
};
