// Local solves of Schwarz smoothers on vertex patches of 2 x 2 x 2 cells, from a residual r:
//   x_i = x_i + w_i A_ii^-1 w_i r_i,
// with the inverse of the surrogate of a patch in the eigenvector basis of the inner nodes. Weights w are products of 1-D
// weights: the square root of the hat of the vertex, and one in a cell that no other patch has along the axis. Patches on
// free sides (FEMTILE_IS_MIRRORED) are completed by mirror images.
//
// A team of threads processes a patch, a thread per line. Patches of a colour write disjoint nodes.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "modes.cuh"
#include "colour.cuh"
#include "nodes.cuh"
#include "weights.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
static_assert(TEAM >= N * N, "a thread has a line of the inside");

// Entry (x, y, z) is at x + ROW y + LAYER z in shared memory; the strides have the fewest bank conflicts.
const u32 ROW = FEMTILE_ROW, LAYER = FEMTILE_LAYER, TENSOR = (N - 1) * (ROW + LAYER) + N;

// The factors of stiffness of a patch. They follow the 1-D weights, three for each vertex of the grid.
struct Scales {
    T x, y, z;

    __device__ inline Scales(const T* modes, const Colour& colour, const Patch& patch) {
        const u64 row = colour.cells[0] + 1, layer = row * (colour.cells[1] + 1);
        const T* const own = modes + 2 * N + 3 * ((patch.at[0] + 1) + (patch.at[1] + 1) * row + (patch.at[2] + 1) * layer);
        x = __ldg(own);
        y = __ldg(own + 1);
        z = __ldg(own + 2);
    }
};

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    vertex_patch_additive(T* x, const T* r, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < colour.count();
    const Patch patch(colour, is_active ? number : 0);
    T* const values = shared + (is_active ? team : 0) * TENSOR;
    const u32 p = own % N, q = own / N;
    const bool has_line = is_active && q < N;

    T *const along_x = values + ROW * p + LAYER * q, *const along_y = values + p + LAYER * q, *const along_z = values + p + ROW * q;
    const PatchNodes nodes(colour, patch);
    const T* const hats = modes + N;
    T line[N], weights[N];
    if (has_line) {
        const T of_column = weight(hats, colour, patch, 0, p) * weight(hats, colour, patch, 1, q);
#pragma unroll
        for (u32 i = 0; i < N; ++i) weights[i] = of_column * weight(hats, colour, patch, 2, i);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            line[i] = weights[i] * nodes.factor(p + 1, q + 1, i + 1) * r[nodes.node(p + 1, q + 1, i + 1)];
        }
        test_modes(line);
        store_line(along_z, line, LAYER);
    }
    __syncthreads();
    if (has_line) {
        load_line(line, along_y, ROW);
        test_modes(line);
        store_line(along_y, line, ROW);
    }
    __syncthreads();
    if (has_line) {
        // p and q are mode numbers along y and z here.
        const Scales scales(modes, colour, patch);
        const T rest = scales.y * __ldg(modes + p) + scales.z * __ldg(modes + q);
        load_line(line, along_x, 1);
        test_modes(line);
#pragma unroll
        for (u32 i = 0; i < N; ++i) line[i] *= reciprocal(scales.x * LAMBDA[i] + rest);
        to_nodes(line, 0, 0);
        store_line(along_x, line, 1);
    }
    __syncthreads();
    if (has_line) {
        load_line(line, along_y, ROW);
        to_nodes(line, 0, 0);
        store_line(along_y, line, ROW);
    }
    __syncthreads();
    if (has_line) {
        load_line(line, along_z, LAYER);
        to_nodes(line, 0, 0);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            if (nodes.has(p + 1, q + 1, i + 1)) x[nodes.node(p + 1, q + 1, i + 1)] += weights[i] * line[i];
        }
    }
}
