// Positions of values of a patch in shared memory, and the work of a thread.
//
// A patch has M nodes along each axis, N of them inner. Intermediate tensors of a residual have N entries along the axes
// already contracted, and M along the others.
#pragma once
#include "femtile.cuh"

const u32 K = FEMTILE_DEGREE, N = 2 * K - 1, M = 2 * K + 1;
// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Whether inner values are packed; whether threads with work are numbered consecutively; whether a thread computes a node
// instead of a column.
const bool IS_PACKED = FEMTILE_IS_PACKED, IS_LINEAR = FEMTILE_IS_LINEAR, IS_CUBE = FEMTILE_IS_CUBE;
// Edge of all tensors that are not packed.
const u32 EDGE = FEMTILE_HAS_RESIDUAL ? M : N;

// A tensor with X, Y, Z entries.
template <u32 X, u32 Y, u32 Z>
struct Box {
    static const u32 ROW = IS_PACKED ? X : EDGE, LAYER = IS_PACKED ? X * Y : EDGE * EDGE;

    static __device__ constexpr u32 length(u32 axis) { return axis == 0 ? X : axis == 1 ? Y : Z; }

    static __device__ inline u32 at(u32 x, u32 y, u32 z) { return place(x, X) + place(y, Y) * ROW + place(z, Z) * LAYER; }

    // Unless packed, inner nodes keep their position in the whole patch.
    static __device__ inline u32 place(u32 index, u32 length) { return !IS_PACKED && length < EDGE ? index + 1 : index; }
};

typedef Box<M, M, M> Whole;
typedef Box<N, N, N> Inside;

// Values of a team: the right-hand side and two intermediate tensors; for a residual also all of x.
const u32 TENSOR = EDGE * EDGE * EDGE, INSIDE = N * N * N;
const u32 OF_WHOLE = FEMTILE_HAS_RESIDUAL ? M * M * M : 0, OF_B = IS_PACKED ? INSIDE : TENSOR;
const u32 OF_FIRST = !FEMTILE_HAS_RESIDUAL ? 0 : IS_PACKED ? N * M * M : TENSOR;
const u32 OF_SECOND = IS_PACKED ? (FEMTILE_HAS_RESIDUAL ? N * N * M : INSIDE) : TENSOR;
const u32 TEAM_VALUES = OF_WHOLE + OF_B + OF_FIRST + OF_SECOND;

// Tables of a block: rows of mass and stiffness of the inner nodes, eigenvectors and eigenvalues.
const u32 MATRIX = N * M, TABLES = 2 * MATRIX + N * N + N;

// The indices of a thread along two axes, and the layer where a thread computes one node.
template <u32 FAST, u32 SLOW, u32 LAYERS>
struct Place {
    u32 fast, slow, layer;

    __device__ inline explicit Place(u32 own) {
        if (IS_LINEAR) {
            fast = own % FAST;
            slow = own / FAST;
            layer = 0;
        } else {
            fast = own % EDGE - (FAST < EDGE);
            slow = (IS_CUBE ? own / EDGE % EDGE : own / EDGE) - (SLOW < EDGE);
            layer = IS_CUBE ? own / (EDGE * EDGE) - (LAYERS < EDGE) : 0;
        }
    }

    // Threads at the edge are masked: -1 wraps to more than any length.
    __device__ inline bool is_active() const { return fast < FAST && slow < SLOW && layer < LAYERS; }
};
