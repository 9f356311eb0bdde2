// Positions of the nodes of a patch in the grid.
#pragma once
#include "femtile.cuh"
#include "colour.cuh"

#if FEMTILE_IS_MIRRORED

// Along an axis, also for patches around vertices on free sides: functions are even across such a side, so the missing
// nodes of a patch are mirror images.
struct MirroredLine {
    // The lowest node of the patch, which may lie before the grid, and the last node of the grid.
    int begin, last;

    __device__ inline MirroredLine(const Colour& colour, const Patch& patch, u32 axis) {
        begin = FEMTILE_DEGREE * (int)patch.at[axis];
        last = FEMTILE_DEGREE * (int)colour.cells[axis];
    }

    __device__ inline u64 node(u32 i) const {
        const int at = begin + (int)i;
        return (u64)(at < 0 ? -at : at > last ? 2 * last - at : at);
    }

    __device__ inline bool has(u32 i) const {
        const int at = begin + (int)i;
        return at >= 0 && at <= last;
    }

    // Integrals over the cells of a node on the side count twice, as the grid has only half of them.
    __device__ inline T factor(u32 i) const {
        const int at = begin + (int)i;
        const bool is_low = begin < 0 && at == 0, is_high = begin + 2 * FEMTILE_DEGREE > last && at == last;
        return is_low || is_high ? (T)2 : (T)1;
    }
};

// Whether, along this axis, the grid has the node of a patch.
__device__ inline bool has_node(const Colour& colour, const Patch& patch, u32 axis, u32 i) {
    return MirroredLine(colour, patch, axis).has(i);
}

struct PatchNodes {
    MirroredLine x, y, z;
    u64 row, layer;

    __device__ inline PatchNodes(const Colour& colour, const Patch& patch)
        : x(colour, patch, 0), y(colour, patch, 1), z(colour, patch, 2), row(colour.row), layer(colour.layer) {}

    __device__ inline u64 node(u32 i, u32 j, u32 k) const { return x.node(i) + y.node(j) * row + z.node(k) * layer; }
    __device__ inline bool has(u32 i, u32 j, u32 k) const { return x.has(i) && y.has(j) && z.has(k); }
    __device__ inline T factor(u32 i, u32 j, u32 k) const { return x.factor(i) * y.factor(j) * z.factor(k); }
    // In the plane.
    __device__ inline u64 node(u32 i, u32 j) const { return x.node(i) + y.node(j) * row; }
    __device__ inline bool has(u32 i, u32 j) const { return x.has(i) && y.has(j); }
    __device__ inline T factor(u32 i, u32 j) const { return x.factor(i) * y.factor(j); }
};

#else

__device__ inline bool has_node(const Colour&, const Patch&, u32, u32) { return true; }

struct PatchNodes {
    u64 first, row, layer;

    __device__ inline PatchNodes(const Colour& colour, const Patch& patch)
        : first(patch.first(colour)), row(colour.row), layer(colour.layer) {}

    // By index in the patch.
    __device__ inline u64 node(u32 i, u32 j, u32 k) const { return first + i + j * row + k * layer; }
    // Whether the grid has the node.
    __device__ inline bool has(u32, u32, u32) const { return true; }
    // The factor of right-hand sides.
    __device__ inline T factor(u32, u32, u32) const { return (T)1; }
    // In the plane.
    __device__ inline u64 node(u32 i, u32 j) const { return first + i + j * row; }
    __device__ inline bool has(u32, u32) const { return true; }
    __device__ inline T factor(u32, u32) const { return (T)1; }
};

#endif
