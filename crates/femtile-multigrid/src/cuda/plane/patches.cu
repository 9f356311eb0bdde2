// The multiplicative Schwarz smoother on vertex patches of 2 x 2 equal cells of one colour, with disjoint inner nodes:
//   x_i = A_ii^-1 (b_i - A_ib x_b),
// where x_b are values on the surface of a patch. Old inner values do not enter.
//
// Surface values are made mass-orthogonal to the inner modes along each axis. They then couple through the stiffness
// along one axis only, side by side:
//   (l_i + l_j) x_ij = b_ij - q_i^s F_j^s - q_j^s G_i^s
// in modes, F and G the modes of the sides across x and y with their ends. Even modes take the sum of opposite sides, odd
// modes the difference.
//
// Patches on free sides are completed by mirror images (FEMTILE_IS_MIRRORED). A team of threads processes a patch, a
// thread per line.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "modes.cuh"
#include "colour.cuh"
#include "nodes.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
static_assert(TEAM >= N, "a thread has a line of the inside");

// Modes of a patch, then of its sides, [F+, F-, G+, G-][N].
const u32 SIDES = N * N, OF_TEAM = SIDES + 4 * N;

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    plane_patch(T* x, const T* b, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < colour.count(), has_line = is_active && own < N;
    const PatchNodes nodes(colour, Patch(colour, is_active ? number : 0));
    T *const values = shared + (is_active ? team : 0) * OF_TEAM, *const sides = values + SIDES;

    T line[N];
    for (u32 i = own; is_active && i < 4; i += TEAM) {
        const bool is_across_x = i < 2, is_difference = i % 2 == 1;
        T along[M];
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            const T low = x[is_across_x ? nodes.node(0, j) : nodes.node(j, 0)];
            const T high = x[is_across_x ? nodes.node(2 * K, j) : nodes.node(j, 2 * K)];
            along[j] = is_difference ? low - high : low + high;
        }
        to_modes(line, along);
        store_line(sides + i * N, line, 1);
    }
    if (has_line) {
#pragma unroll
        for (u32 j = 0; j < N; ++j) line[j] = nodes.factor(own + 1, j + 1) * __ldg(b + nodes.node(own + 1, j + 1));
        test_modes(line);
        store_line(values + own, line, N);
    }
    __syncthreads();

    if (has_line) {
        // `own` is a mode number along y here.
        const T scale_x = (T)colour.scales[0], scale_y = (T)colour.scales[1];
        const T sum = sides[own], difference = sides[N + own], rest = scale_y * __ldg(modes + own);
        const T of_y = scale_y * __ldg(modes + N + own);
        const T* const across_y = sides + (own < EVEN ? 2 : 3) * N;
        load_line(line, values + own * N, 1);
        test_modes(line);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            line[i] -= scale_x * Q_MODES[i] * (i < EVEN ? sum : difference) + of_y * across_y[i];
            line[i] *= reciprocal(scale_x * LAMBDA[i] + rest);
        }
        to_nodes(line, sum, difference);
        store_line(values + own * N, line, 1);
    }
    __syncthreads();

    if (has_line) {
        const T low = x[nodes.node(own + 1, 0)], high = x[nodes.node(own + 1, 2 * K)];
        load_line(line, values + own, N);
        to_nodes(line, low + high, low - high);
#pragma unroll
        for (u32 j = 0; j < N; ++j) {
            if (nodes.has(own + 1, j + 1)) x[nodes.node(own + 1, j + 1)] = line[j];
        }
    }
}
