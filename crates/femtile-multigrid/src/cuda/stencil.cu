// The Laplacian on equal cells of degree 1, where a patch has one inner node: a 27-point stencil,
//   a(dx, dy, dz) = s_x K_dx M_dy M_dz + s_y M_dx K_dy M_dz + s_z M_dx M_dy K_dz,  K = (-1 2 -1), M = (1 4 1) / 6.
//
// A block processes a row of nodes along x. The eight rows around it are constant meanwhile; their contribution is
// computed first, each value entering twice: for neighbouring nodes and for its own. Beyond a free side nodes have mirror
// images, and integrals of nodes on the side count twice.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "colour.cuh"

// Weights of a neighbouring row, by its offset along y and z: for the node with the same x, and for the next ones.
struct Weights {
    T own[2][2], next[2][2];

    __device__ inline explicit Weights(const double* scales) {
        const double k[2] = {2.0, -1.0}, m[2] = {4.0 / 6.0, 1.0 / 6.0};
#pragma unroll
        for (u32 y = 0; y < 2; ++y) {
#pragma unroll
            for (u32 z = 0; z < 2; ++z) {
                const double along_x = scales[0] * m[y] * m[z], rest = scales[1] * k[y] * m[z] + scales[2] * m[y] * k[z];
                own[y][z] = (T)(k[0] * along_x + m[0] * rest);
                next[y][z] = (T)(k[1] * along_x + m[1] * rest);
            }
        }
    }
};

// A row of nodes along x: its position, strides to neighbouring rows, and the factor of right-hand sides.
struct Row {
    u64 first;
    long long below_y, above_y, below_z, above_z;
    T factor;

    __device__ inline Row(const Colour& colour, u64 y, u64 z) {
        const long long row = (long long)colour.row, layer = (long long)colour.layer;
        const bool is_low_y = y == 0, is_high_y = y == colour.cells[1], is_low_z = z == 0, is_high_z = z == colour.cells[2];
        first = y * colour.row + z * colour.layer;
        below_y = is_low_y ? row : -row;
        above_y = is_high_y ? -row : row;
        below_z = is_low_z ? layer : -layer;
        above_z = is_high_z ? -layer : layer;
        factor = (is_low_y || is_high_y ? (T)2 : (T)1) * (is_low_z || is_high_z ? (T)2 : (T)1);
    }
};

// Contribution of the eight neighbouring rows: with weights of nodes of the same x, and of the next ones.
struct Around {
    T own, next;

    __device__ inline Around(const Weights& weights, const T* x, const Row& row) {
        const T y = x[row.below_y] + x[row.above_y], z = x[row.below_z] + x[row.above_z];
        const T both = (x[row.below_z + row.below_y] + x[row.below_z + row.above_y])
            + (x[row.above_z + row.below_y] + x[row.above_z + row.above_y]);
        own = weights.own[1][0] * y + weights.own[0][1] * z + weights.own[1][1] * both;
        next = weights.next[1][0] * y + weights.next[0][1] * z + weights.next[1][1] * both;
    }
};

// x_i = (b_i - sum of a_ij x_j) / a_ii for the nodes of a row, two colours in turn.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    box_stencil_solve(T* x, const T* b, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 n = (u32)colour.row, at = blockIdx.x;
    const u64 y = 1 + colour.places[1] + 2 * (at % colour.counts[1]), z = 1 + colour.places[2] + 2 * (at / colour.counts[1]);
    const Row row(colour, y, z);
    T *const own = shared, *const next = shared + n, *const rest = shared + 2 * n;
    const Weights weights(colour.scales);
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        const Around around(weights, x + row.first + i, row);
        own[i] = x[row.first + i];
        next[i] = around.next;
        rest[i] = row.factor * (i == 0 || i + 1 == n ? (T)2 : (T)1) * b[row.first + i] - around.own;
    }
    __syncthreads();
    const T inverse = reciprocal(weights.own[0][0]);
    for (u32 turn = 0; turn < 2; ++turn) {
        // The first node with an unknown counts as even.
        const u32 begin = (u32)colour.first[0] + (turn + (u32)colour.is_reversed) % 2;
        for (u32 i = begin + 2 * threadIdx.x; i <= (u32)colour.last[0]; i += 2 * FEMTILE_THREADS) {
            const u32 below = i == 0 ? 1 : i - 1, above = i + 1 == n ? i - 1 : i + 1;
            const T sides = weights.next[0][0] * (own[below] + own[above]) + (next[below] + next[above]);
            own[i] = (rest[i] - sides) * inverse;
            x[row.first + i] = own[i];
        }
        __syncthreads();
    }
}

// r = b - A x, or -A x without b, zero at Dirichlet nodes.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    box_stencil_residual(T* r, const T* b, const T* x, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 n = (u32)colour.row, n_rows = (u32)colour.cells[1] + 1;
    const u64 y = blockIdx.x % n_rows, z = blockIdx.x / n_rows;
    const Row row(colour, y, z);
    const u64 first = row.first;
    if (y < colour.first[1] || y > colour.last[1] || z < colour.first[2] || z > colour.last[2]) {
        for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) r[first + i] = 0;
        return;
    }
    T* const next = shared;
    const Weights weights(colour.scales);
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        const Around around(weights, x + first + i, row);
        const T own = x[first + i];
        next[i] = around.next + weights.next[0][0] * own;
        r[first + i] = around.own + weights.own[0][0] * own;
    }
    __syncthreads();
    const T share = (T)1 / row.factor;
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        const u32 below = i == 0 ? 1 : i - 1, above = i + 1 == n ? i - 1 : i + 1;
        const T product = r[first + i] + (next[below] + next[above]);
        const T of_ends = i == 0 || i + 1 == n ? (T)0.5 : (T)1;
        const bool is_given = i < (u32)colour.first[0] || i > (u32)colour.last[0];
        r[first + i] = is_given ? (T)0 : (b ? b[first + i] : 0) - share * of_ends * product;
    }
}
