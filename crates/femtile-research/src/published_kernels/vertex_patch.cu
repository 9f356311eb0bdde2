// A smoothing step on vertex patches of one colour as published in [cui2024], for comparison:
//   r = b - A x on the inner nodes,  x_i = x_i + A_ii^-1 r,
// by 1-D matrices in shared memory; in one kernel, or in two with r in global memory.
//
// A = K x M x M + M x K x M + M x M x K along z, y, x; products with M common to two terms are computed once. Fast
// diagonalization: S^T along all axes, division by the sum of eigenvalues, S along all axes.
#include "femtile.cuh"
#include "reciprocal.cuh"
#include "colour.cuh"
#include "layout.cuh"
#if FEMTILE_IS_TENSOR_CORE
#include "tensor_core.cuh"
#else
#include "contract.cuh"
#endif
#if FEMTILE_IS_SURFACE
#include "surface.cuh"
#endif

// Where threads lie along x and y in all products, a product along z reads only what the thread itself wrote: no barrier.
#if FEMTILE_IS_PACKED && !FEMTILE_IS_TENSOR_CORE
#define WAIT_ALONG_Z()
#else
#define WAIT_ALONG_Z() __syncthreads()
#endif

// Uses of the entries of a product: stored, or added, times a factor.
template <typename To>
struct Set {
    T* to;
    T scale;
    __device__ inline void operator()(u32 x, u32 y, u32 z, T sum) const { to[To::at(x, y, z)] = scale * sum; }
};

template <typename To>
struct Add {
    T* to;
    T scale;
    __device__ inline void operator()(u32 x, u32 y, u32 z, T sum) const { to[To::at(x, y, z)] += scale * sum; }
};

// Division by the sum of eigenvalues.
struct Divide {
    T* to;
    const T* values;
    T x_scale, y_scale, z_scale;
    __device__ inline void operator()(u32 x, u32 y, u32 z, T sum) const {
        to[Inside::at(x, y, z)] = sum * reciprocal(x_scale * values[x] + y_scale * values[y] + z_scale * values[z]);
    }
};

// A vector of the grid at the inner nodes of a patch.
struct Nodes {
    T* first;
    u64 row, layer;
    __device__ inline T& at(u32 x, u32 y, u32 z) const { return first[(x + 1) + (y + 1) * row + (z + 1) * layer]; }
};

// Right-hand side minus a product, to global memory.
struct Residual {
    Nodes r;
    const T* b;
    __device__ inline void operator()(u32 x, u32 y, u32 z, T sum) const { r.at(x, y, z) = b[Inside::at(x, y, z)] - sum; }
};

// A correction of x, or x itself where old values do not enter.
struct Correct {
    Nodes x;
    __device__ inline void operator()(u32 i, u32 j, u32 k, T sum) const {
        x.at(i, j, k) = FEMTILE_IS_SURFACE ? sum : x.at(i, j, k) + sum;
    }
};

__device__ inline bool is_inside(u32 index) { return index > 0 && index + 1 < M; }

// Reads x at all nodes of patches and b at inner ones; a residual alone is written to r. `tables` has the matrices, then
// the dense inverse where it is used.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS)
    vertex_patch_published(T* x, const T* b, T* r, const T* tables, Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 team = threadIdx.x / TEAM, own = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
    const bool is_active = team < TEAMS && number < colour.count();
    const u64 first = Patch(colour, is_active ? number : 0).first(colour);
    T *const whole = shared + TABLES + (is_active ? team : 0) * TEAM_VALUES, *const own_b = whole + OF_WHOLE;
    T *const second = own_b + OF_B, *const one = second + OF_SECOND;
    const T *const mass = shared, *const stiffness = mass + MATRIX, *const vectors = stiffness + MATRIX;
    const T* const values = vectors + N * N;
    const T x_scale = (T)colour.scales[0], y_scale = (T)colour.scales[1], z_scale = (T)colour.scales[2];
    const Nodes of_x = {x + first, colour.row, colour.layer}, of_r = {r + first, colour.row, colour.layer};

    for (u32 i = threadIdx.x; i < TABLES; i += FEMTILE_THREADS) shared[i] = tables[i];
    for (u32 i = own; is_active && i < OF_WHOLE; i += TEAM) {
        const u32 at_x = i % M, at_y = i / M % M, at_z = i / (M * M);
        if (FEMTILE_IS_SURFACE && is_inside(at_x) && is_inside(at_y) && is_inside(at_z)) continue;
        whole[i] = x[first + at_x + at_y * colour.row + at_z * colour.layer];
    }
    for (u32 i = own; is_active && i < INSIDE; i += TEAM) {
        const u32 at_x = i % N, at_y = i / N % N, at_z = i / (N * N);
        own_b[Inside::at(at_x, at_y, at_z)] = b[first + at_x + 1 + (at_y + 1) * colour.row + (at_z + 1) * colour.layer];
    }
    __syncthreads();

#if FEMTILE_IS_DATA_ALONE
    for (u32 i = own; is_active && i < INSIDE; i += TEAM) {
        const u32 at_x = i % N, at_y = i / N % N, at_z = i / (N * N);
        const T of_b = own_b[Inside::at(at_x, at_y, at_z)];
        const T sum = FEMTILE_HAS_RESIDUAL && !FEMTILE_IS_SURFACE ? whole[Whole::at(at_x + 1, at_y + 1, at_z + 1)] + of_b : of_b;
        if (FEMTILE_HAS_SOLVE) {
            Correct{of_x}(at_x, at_y, at_z, sum);
        } else {
            of_r.at(at_x, at_y, at_z) = sum;
        }
    }
#else
    typedef Box<N, M, M> AlongX;
    typedef Box<N, N, M> AlongY;
#if FEMTILE_HAS_RESIDUAL
#if FEMTILE_IS_SURFACE
#define ALONG_X(matrix, scale) contract_surface(matrix, whole, own, Set<AlongX>{one, scale})
#else
#define ALONG_X(matrix, scale) contract<0, false, Whole, AlongX>(matrix, whole, own, Set<AlongX>{one, scale})
#endif
    if (is_active) ALONG_X(mass, (T)1);
    __syncthreads();
    if (is_active) contract<1, false, AlongX, AlongY>(mass, one, own, Set<AlongY>{second, (T)1});
    WAIT_ALONG_Z();
    if (is_active) contract<2, false, AlongY, Inside>(stiffness, second, own, Add<Inside>{own_b, -z_scale});
    WAIT_ALONG_Z();
    if (is_active) contract<1, false, AlongX, AlongY>(stiffness, one, own, Set<AlongY>{second, y_scale});
    __syncthreads();
    if (is_active) ALONG_X(stiffness, x_scale);
    __syncthreads();
    if (is_active) contract<1, false, AlongX, AlongY>(mass, one, own, Add<AlongY>{second, (T)1});
    WAIT_ALONG_Z();
#if FEMTILE_HAS_SOLVE
    if (is_active) contract<2, false, AlongY, Inside>(mass, second, own, Add<Inside>{own_b, (T)-1});
    WAIT_ALONG_Z();
#else
    if (is_active) contract<2, false, AlongY, Inside>(mass, second, own, Residual{of_r, own_b});
#endif
#endif

#if FEMTILE_HAS_SOLVE && FEMTILE_IS_DENSE
    __syncthreads();
    const T* const inverse = tables + TABLES;
    for (u32 i = own; is_active && i < INSIDE; i += TEAM) {
        T sum = 0;
        for (u32 j = 0; j < INSIDE; ++j) sum += __ldg(inverse + j * INSIDE + i) * own_b[j];
        Correct{of_x}(i % N, i / N % N, i / (N * N), sum);
    }
#elif FEMTILE_HAS_SOLVE
    const Divide divide = {second, values, x_scale, y_scale, z_scale};
    if (is_active) contract<2, true, Inside, Inside>(vectors, own_b, own, Set<Inside>{second, (T)1});
    __syncthreads();
    if (is_active) contract<1, true, Inside, Inside>(vectors, second, own, Set<Inside>{own_b, (T)1});
    __syncthreads();
    if (is_active) contract<0, true, Inside, Inside>(vectors, own_b, own, divide);
    __syncthreads();
    if (is_active) contract<0, false, Inside, Inside>(vectors, second, own, Set<Inside>{own_b, (T)1});
    __syncthreads();
    if (is_active) contract<1, false, Inside, Inside>(vectors, own_b, own, Set<Inside>{second, (T)1});
    WAIT_ALONG_Z();
    if (is_active) contract<2, false, Inside, Inside>(vectors, second, own, Correct{of_x});
#endif
#endif
}
