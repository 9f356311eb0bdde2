// The multiplicative Schwarz smoother on vertex patches of 2 x 2 x 2 equal cells of one colour, with disjoint inner nodes:
//   x_i = x_i + A_ii^-1 (b - A x)_i,
// with the residual from mass and stiffness of two cells, surface included, and the inverse in the eigenvector basis of
// the inner nodes.
//
// Patches on free sides (FEMTILE_IS_MIRRORED) are completed by mirror images.
//
// A team of threads processes a patch, a thread per line.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "strided.cuh"
#include "tables.cuh"
#include "colour.cuh"
#include "nodes.cuh"

// Threads of a team, teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Inner nodes of a line, and all its nodes; odd row strides avoid bank conflicts.
const u32 N = 2 * FEMTILE_DEGREE - 1, M = 2 * FEMTILE_DEGREE + 1, ROW = M, LAYER = M * M, TENSOR = M * LAYER;

// Adds a multiple of a matrix, rows of inner nodes, times a line with ends.
#define ADD_PRODUCT(to, table, scale, line)                                         \
    _Pragma("unroll") for (u32 i = 0; i < N; ++i) {                                 \
        T sum = table[i * M] * line[0];                                             \
        _Pragma("unroll") for (u32 j = 1; j < M; ++j) sum += table[i * M + j] * line[j]; \
        to[i] += scale * sum;                                                       \
    }

// S^T or S along a line in shared memory.
template <bool IS_TRANSPOSED>
__device__ inline void vectors_along(T* values, u32 stride) {
    T line[N];
    load_line(line, values, stride);
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
        T sum = 0;
#pragma unroll
        for (u32 j = 0; j < N; ++j) sum += VECTORS[IS_TRANSPOSED ? j * N + i : i * N + j] * line[j];
        values[i * stride] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    vertex_patch_fused(T* x, const T* b, const T* modes, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, patch_number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && patch_number < colour.count();
    const PatchNodes nodes(colour, Patch(colour, is_active ? patch_number : 0));
    T *const values = shared + (is_active ? team : 0) * 2 * TENSOR, *const others = values + TENSOR;
    const u32 p = own % M, q = own / M;
    const bool is_inside = is_active && p < N && q < N;
    const T scale_x = (T)colour.scales[0], scale_y = (T)colour.scales[1], scale_z = (T)colour.scales[2];

    // Rows along x are contiguous, and so is each line.
    for (u32 i = own; is_active && i < TENSOR; i += TEAM) {
        values[i] = x[nodes.node(i % M, i / M % M, i / LAYER)];
    }
    __syncthreads();

    // M_x and K_x; then M_y M_x and K_y M_x + M_y K_x; then all three terms, at inner nodes.
    if (is_active) {
        T line[M], mass[N] = {}, stiffness[N] = {};
        load_line(line, values + p * ROW + q * LAYER, 1);
        ADD_PRODUCT(mass, MASS, (T)1, line);
        ADD_PRODUCT(stiffness, STIFFNESS, scale_x, line);
        store_line(values + p * ROW + q * LAYER, mass, 1);
        store_line(others + p * ROW + q * LAYER, stiffness, 1);
    }
    __syncthreads();
    if (is_active && p < N) {
        T *const of_mass = values + p + q * LAYER, *const of_stiffness = others + p + q * LAYER;
        T line[M], mass[N] = {}, stiffness[N] = {};
        load_line(line, of_mass, ROW);
        ADD_PRODUCT(mass, MASS, (T)1, line);
        ADD_PRODUCT(stiffness, STIFFNESS, scale_y, line);
        load_line(line, of_stiffness, ROW);
        ADD_PRODUCT(stiffness, MASS, (T)1, line);
        store_line(of_mass, mass, ROW);
        store_line(of_stiffness, stiffness, ROW);
    }
    __syncthreads();
    T* const along_x = values + p * ROW + q * LAYER;
    T* const along_y = values + p + q * LAYER;
    T* const along_z = values + p + q * ROW;
    if (is_inside) {
        T line[M], sums[N] = {};
        load_line(line, along_z, LAYER);
        ADD_PRODUCT(sums, STIFFNESS, scale_z, line);
        load_line(line, others + p + q * ROW, LAYER);
        ADD_PRODUCT(sums, MASS, (T)1, line);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            sums[i] = nodes.factor(p + 1, q + 1, i + 1) * __ldg(b + nodes.node(p + 1, q + 1, i + 1)) - sums[i];
        }
        store_line(along_z, sums, LAYER);
        vectors_along<true>(along_z, LAYER);
    }
    __syncthreads();
    if (is_inside) vectors_along<true>(along_y, ROW);
    __syncthreads();
    if (is_inside) {
        vectors_along<true>(along_x, 1);
        const T rest = scale_y * __ldg(modes + p) + scale_z * __ldg(modes + q);
#pragma unroll
        for (u32 i = 0; i < N; ++i) along_x[i] *= reciprocal(scale_x * LAMBDA[i] + rest);
        vectors_along<false>(along_x, 1);
    }
    __syncthreads();
    if (is_inside) vectors_along<false>(along_y, ROW);
    __syncthreads();
    if (is_inside) {
        vectors_along<false>(along_z, LAYER);
#pragma unroll
        for (u32 i = 0; i < N; ++i) {
            if (nodes.has(p + 1, q + 1, i + 1)) x[nodes.node(p + 1, q + 1, i + 1)] += along_z[i * LAYER];
        }
    }
}
