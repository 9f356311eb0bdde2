// The Laplacian on equal cells of degree one, where a patch has a single node inside: 27 weights,
//   a(dx, dy, dz) = s_x K_dx M_dy M_dz + s_y M_dx K_dy M_dz + s_z M_dx M_dy K_dz,  K = (-1 2 -1), M = (1 4 1) / 6.
//
// A block takes a row of nodes along x. The eight rows around it do not change meanwhile: what they add comes first, from
// each value twice, once for the nodes beside it and once for its own.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "colour.cuh"

// Weights of a row, by whether it is beside along y and z: of the node at the same place along x, and of those next to it.
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

// What the eight rows around one add at its nodes: with the weights of nodes at the same place, and of those next to it.
struct Around {
    T own, next;

    __device__ inline Around(const Weights& weights, const T* x, u64 row, u64 layer) {
        const T y = x[-(long long)row] + x[row], z = x[-(long long)layer] + x[layer];
        const T both = (x[-(long long)(layer + row)] + x[-(long long)(layer - row)]) + (x[layer - row] + x[layer + row]);
        own = weights.own[1][0] * y + weights.own[0][1] * z + weights.own[1][1] * both;
        next = weights.next[1][0] * y + weights.next[0][1] * z + weights.next[1][1] * both;
    }
};

// x_i = (b_i - sum of a_ij x_j) / a_ii for the nodes of a row, two colours one after the other.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    box_stencil_solve(T* x, const T* b, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 n = (u32)colour.row, at = blockIdx.x;
    const u64 y = 1 + colour.places[1] + 2 * (at % colour.counts[1]), z = 1 + colour.places[2] + 2 * (at / colour.counts[1]);
    const u64 first = y * colour.row + z * colour.layer;
    T *const own = shared, *const next = shared + n, *const rest = shared + 2 * n;
    const Weights weights(colour.scales);
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        const Around around(weights, x + first + i, colour.row, colour.layer);
        own[i] = x[first + i];
        next[i] = around.next;
        rest[i] = b[first + i] - around.own;
    }
    __syncthreads();
    const T inverse = reciprocal(weights.own[0][0]);
    for (u32 turn = 0; turn < 2; ++turn) {
        // The first node inside has an even place.
        const u32 begin = 1 + (turn + (u32)colour.is_reversed) % 2;
        for (u32 i = begin + 2 * threadIdx.x; i + 1 < n; i += 2 * FEMTILE_THREADS) {
            const T sides = weights.next[0][0] * (own[i - 1] + own[i + 1]) + (next[i - 1] + next[i + 1]);
            own[i] = (rest[i] - sides) * inverse;
            x[first + i] = own[i];
        }
        __syncthreads();
    }
}

// r = b - A x, or -A x without b, zero on the boundary.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS)
    box_stencil_residual(T* r, const T* b, const T* x, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 n = (u32)colour.row, n_rows = (u32)colour.cells[1] + 1;
    const u64 y = blockIdx.x % n_rows, z = blockIdx.x / n_rows, first = y * colour.row + z * colour.layer;
    if (y == 0 || y == colour.cells[1] || z == 0 || z == colour.cells[2]) {
        for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) r[first + i] = 0;
        return;
    }
    T* const next = shared;
    const Weights weights(colour.scales);
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        const Around around(weights, x + first + i, colour.row, colour.layer);
        const T own = x[first + i];
        next[i] = around.next + weights.next[0][0] * own;
        r[first + i] = (b ? b[first + i] : 0) - around.own - weights.own[0][0] * own;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        r[first + i] = i == 0 || i + 1 == n ? 0 : r[first + i] - (next[i - 1] + next[i + 1]);
    }
}
