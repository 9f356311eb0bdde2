// Local solves of Schwarz smoothers on vertex patches of 2 x 2 cells, from a residual r:
//   x_i = x_i + w_i A_ii^-1 w_i r_i,
// with the inverse in the eigenvector basis of the inner nodes and two factors of stiffness for each patch, which follow
// the 1-D weights w by the number of its vertex. Patches on free sides (FEMTILE_IS_MIRRORED) are completed by mirror
// images.
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
static_assert(TEAM >= N, "a thread has a line of the inside");

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    plane_corrections(T* x, const T* r, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool has_line = team < TEAMS && own < N && number < colour.count();
    const Patch patch(colour, has_line ? number : 0);
    const PatchNodes nodes(colour, patch);
    T* const values = shared + (has_line ? team : 0) * N * N;
    const T* const hats = modes + N;

    // Weights are computed twice, which takes fewer registers than to keep them.
    const T of_column = has_line ? weight(hats, colour, patch, 0, own) : (T)0;
    T line[N];
    if (has_line) {
#pragma unroll
        for (u32 j = 0; j < N; ++j) {
            const T share = of_column * weight(hats, colour, patch, 1, j);
            line[j] = share * nodes.factor(own + 1, j + 1) * r[nodes.node(own + 1, j + 1)];
        }
        test_modes(line);
        store_line(values + own, line, N);
    }
    __syncthreads();
    if (has_line) {
        // `own` is a mode number along y here.
        const u64 vertex = (patch.at[0] + 1) + (patch.at[1] + 1) * (colour.cells[0] + 1);
        const T scale_x = __ldg(modes + 2 * N + 2 * vertex), scale_y = __ldg(modes + 2 * N + 2 * vertex + 1);
        const T rest = scale_y * __ldg(modes + own);
        load_line(line, values + own * N, 1);
        test_modes(line);
#pragma unroll
        for (u32 i = 0; i < N; ++i) line[i] *= reciprocal(scale_x * LAMBDA[i] + rest);
        to_nodes(line, 0, 0);
        store_line(values + own * N, line, 1);
    }
    __syncthreads();
    if (has_line) {
        load_line(line, values + own, N);
        to_nodes(line, 0, 0);
#pragma unroll
        for (u32 j = 0; j < N; ++j) {
            const T share = of_column * weight(hats, colour, patch, 1, j);
            if (nodes.has(own + 1, j + 1)) x[nodes.node(own + 1, j + 1)] += share * line[j];
        }
    }
}
