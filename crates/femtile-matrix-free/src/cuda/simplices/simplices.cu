// y = A x for the tangent of a form on triangles or tetrahedra of any degree, computed cell by cell:
//   A = sum over cells of  R^T B^T D' B R,
// where R gathers the unknowns of a cell, B gives values and derivatives along the axes of the reference cell at points or in
// modes, and D' is the tangent there, with the geometry of the cell.
//
// A block has a patch of cells. It reads each unknown of the patch once, brings it to its places in the cells, which lie in shared
// memory, and sums these places afterwards in a fixed order, without atomics. Sums of unknowns that no other patch has go to y,
// those of the others to separate places, which simplices_sum adds.
//
// FEMTILE_STAGED 0: a thread has all values and sums of a cell in registers. 1: a thread has those of one component; values and
// derivatives at all points lie in shared memory, where D' acts on them.
#include "femtile.cuh"
#include "hook.cuh"
#include "tables.cuh"

// Axes, shape functions and points of a cell, components of the field; cells of a patch, threads of a block.
const u32 DIMENSION = FEMTILE_DIMENSION, NODES = FEMTILE_NODES, POINTS = FEMTILE_POINTS, TOGETHER = FEMTILE_COMPONENTS;
const u32 CELLS = FEMTILE_CELLS, THREADS = FEMTILE_THREADS;

// Values and derivatives of a component at a point, as far as D' reads them.
const u32 PER_POINT = FEMTILE_MASS + DIMENSION * FEMTILE_STIFFNESS;

// Entry (node, component) of a cell in shared memory is (node * TOGETHER + component) * CELLS + cell. Entry (component, number,
// point) of a cell, after these, is ((component * PER_POINT + number) * POINTS + point) * CELLS + cell.
const u32 OF_NODES = NODES * TOGETHER * CELLS;

// All these; the places of the unknowns follow.
const u32 OF_VALUES = OF_NODES + (FEMTILE_STAGED ? TOGETHER * PER_POINT * POINTS * CELLS : 0);

// This bit marks constrained unknowns.
const u32 CONSTRAINED = 0x80000000u;

// The patches: four words each, see Patch; their unknowns, with the end of the places of each; places in shared memory,
// [patches][CELLS * NODES]; numbers of the cells, [patches][number][CELLS]; tables if these are not constants.
struct Patches {
    const u32* words;
    const u32* dofs;
    const unsigned short* ends;
    const unsigned short* places;
    const T* numbers;
    const T* tables;
    u64 n_cells;
};

// Where the unknowns of a patch begin, those that no other patch has, all of them, and the first of the separate sums.
struct Patch {
    u32 first, n_own, n, first_share;

    __device__ inline Patch(const u32* words)
        : first(__ldg(words)), n_own(__ldg(words + 1)), n(__ldg(words + 2)), first_share(__ldg(words + 3)) {}
};

// Derivative of a shape function along an axis of the reference cell, its value, and the weight at a point.
struct Table {
    const T* tables;

    __device__ inline T entry(u32 i) const {
#if FEMTILE_CONSTANT
        return TABLES[i];
#else
        return __ldg(tables + i);
#endif
    }
    __device__ inline T slope(u32 axis, u32 point, u32 node) const { return entry((point * (1 + DIMENSION) + 1 + axis) * NODES + node); }
    __device__ inline T value(u32 point, u32 node) const { return entry(point * (1 + DIMENSION) * NODES + node); }
    __device__ inline T weight(u32 point) const {
        return FEMTILE_UNIT_WEIGHTS ? (T)1 : entry(POINTS * (1 + DIMENSION) * NODES + point);
    }
};

#if FEMTILE_TANGENT
const u32 SLOTS = TOGETHER * (1 + DIMENSION), GEOMETRY = DIMENSION * DIMENSION + 1;
const u32 OF_CELL = FEMTILE_TANGENT_CELL, AT_POINT = FEMTILE_TANGENT_POINT;
const u32 CELL_GEOMETRY = FEMTILE_AFFINE ? GEOMETRY : 0, POINT_GEOMETRY = GEOMETRY - CELL_GEOMETRY;
const u32 CELL_NUMBERS = CELL_GEOMETRY + OF_CELL + POINTS * (POINT_GEOMETRY + AT_POINT);

#include "tangent_action.cuh"

// The tangent of any form: of the cell its geometry, if that is constant, and numbers of the tangent; then [number][POINTS].
struct Tangent {
    const T* numbers;
    T kept[CELL_GEOMETRY + OF_CELL + 1];

    __device__ inline Tangent(const T* of_cell, bool is_cell) : numbers(of_cell) {
#pragma unroll
        for (u32 i = 0; i < CELL_GEOMETRY + OF_CELL; ++i) kept[i] = is_cell ? __ldg(of_cell + i * CELLS) : (T)0;
    }
    __device__ inline T at_point(u32 number, u32 point) const {
        return __ldg(numbers + (CELL_GEOMETRY + OF_CELL + number * POINTS + point) * CELLS);
    }
    __device__ inline T geometry(u32 entry, u32 point) const { return FEMTILE_AFFINE ? kept[entry] : at_point(entry, point); }

    __device__ inline void act(T (&values)[TOGETHER], T (&slopes)[TOGETHER][DIMENSION], u32 point, T weight) const {
        T inverse[DIMENSION][DIMENSION], in[SLOTS + OF_CELL + AT_POINT];
#pragma unroll
        for (u32 a = 0; a < DIMENSION; ++a) {
#pragma unroll
            for (u32 i = 0; i < DIMENSION; ++i) inverse[a][i] = geometry(a * DIMENSION + i, point);
        }
#pragma unroll
        for (u32 i = 0; i < OF_CELL; ++i) in[SLOTS + i] = kept[CELL_GEOMETRY + i];
#pragma unroll
        for (u32 i = 0; i < AT_POINT; ++i) in[SLOTS + OF_CELL + i] = at_point(POINT_GEOMETRY + i, point);
        // The determinant at points has their weights.
        const T w = geometry(GEOMETRY - 1, point) * (FEMTILE_AFFINE ? weight : (T)1);
        act_in_space(values, slopes, inverse, w, in);
    }
};
#else
// Diffusion and reaction with one metric a cell: G by its upper rows, then mu.
const u32 OF_TENSOR = FEMTILE_STIFFNESS ? DIMENSION * (DIMENSION + 1) / 2 : 0, CELL_NUMBERS = OF_TENSOR + FEMTILE_MASS;

struct Tangent {
    T kept[CELL_NUMBERS];

    __device__ inline Tangent(const T* of_cell, bool is_cell) {
#pragma unroll
        for (u32 i = 0; i < CELL_NUMBERS; ++i) kept[i] = is_cell ? __ldg(of_cell + i * CELLS) : (T)0;
    }
    __device__ inline void act(T (&values)[TOGETHER], T (&slopes)[TOGETHER][DIMENSION], u32, T weight) const {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
#if FEMTILE_STIFFNESS
            T sums[DIMENSION] = {};
            u32 at = 0;
#pragma unroll
            for (u32 a = 0; a < DIMENSION; ++a) {
                sums[a] += kept[at++] * slopes[c][a];
#pragma unroll
                for (u32 b = a + 1; b < DIMENSION; ++b) {
                    sums[a] += kept[at] * slopes[c][b];
                    sums[b] += kept[at++] * slopes[c][a];
                }
            }
#pragma unroll
            for (u32 a = 0; a < DIMENSION; ++a) slopes[c][a] = weight * sums[a];
#endif
            if (FEMTILE_MASS) values[c] *= weight * kept[CELL_NUMBERS - 1];
        }
    }
};
#endif

// Value and derivatives of a function with these values at the nodes.
__device__ inline void evaluate(T& value, T (&slopes)[DIMENSION], const T (&u)[NODES], const Table& table, u32 point) {
    value = 0;
#pragma unroll
    for (u32 a = 0; a < DIMENSION; ++a) slopes[a] = 0;
#pragma unroll
    for (u32 n = 0; n < NODES; ++n) {
        if (FEMTILE_MASS) value += table.value(point, n) * u[n];
#pragma unroll
        for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) slopes[a] += table.slope(a, point, n) * u[n];
    }
}

// The transpose of evaluate.
__device__ inline void integrate(T (&r)[NODES], T value, const T (&slopes)[DIMENSION], const Table& table, u32 point) {
#pragma unroll
    for (u32 n = 0; n < NODES; ++n) {
        T sum = r[n];
        if (FEMTILE_MASS) sum += table.value(point, n) * value;
#pragma unroll
        for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) sum += table.slope(a, point, n) * slopes[a];
        r[n] = sum;
    }
}

// Applies the tangent to the cells of a patch: values at the nodes become sums.
#if FEMTILE_STAGED
__device__ inline void load_component(T (&u)[NODES], const T* from) {
#pragma unroll
    for (u32 n = 0; n < NODES; ++n) u[n] = from[n * TOGETHER * CELLS];
}

__device__ inline void apply_cells(T* shared, const T* numbers, const Table& table, u32 n_cells) {
    for (u32 item = threadIdx.x; item < TOGETHER * CELLS; item += THREADS) {
        if (item % CELLS >= n_cells) continue;
        T u[NODES];
        load_component(u, shared + item);
        T* const to = shared + OF_NODES + item / CELLS * (PER_POINT * POINTS * CELLS) + item % CELLS;
#pragma unroll 1
        for (u32 q = 0; q < POINTS; ++q) {
            T value, slopes[DIMENSION];
            evaluate(value, slopes, u, table, q);
            if (FEMTILE_MASS) to[q * CELLS] = value;
#pragma unroll
            for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) to[((FEMTILE_MASS + a) * POINTS + q) * CELLS] = slopes[a];
        }
    }
    __syncthreads();
    for (u32 item = threadIdx.x; item < POINTS * CELLS; item += THREADS) {
        const u32 cell = item % CELLS, q = item / CELLS;
        if (cell >= n_cells) continue;
        const Tangent tangent(numbers + cell, true);
        T* const at = shared + OF_NODES + item;
        T values[TOGETHER] = {}, slopes[TOGETHER][DIMENSION] = {};
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            if (FEMTILE_MASS) values[c] = at[c * PER_POINT * POINTS * CELLS];
#pragma unroll
            for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) {
                slopes[c][a] = at[(c * PER_POINT + FEMTILE_MASS + a) * POINTS * CELLS];
            }
        }
        tangent.act(values, slopes, q, table.weight(q));
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) {
            if (FEMTILE_MASS) at[c * PER_POINT * POINTS * CELLS] = values[c];
#pragma unroll
            for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) {
                at[(c * PER_POINT + FEMTILE_MASS + a) * POINTS * CELLS] = slopes[c][a];
            }
        }
    }
    __syncthreads();
    for (u32 item = threadIdx.x; item < TOGETHER * CELLS; item += THREADS) {
        if (item % CELLS >= n_cells) continue;
        const T* const from = shared + OF_NODES + item / CELLS * (PER_POINT * POINTS * CELLS) + item % CELLS;
        T r[NODES] = {};
#pragma unroll 1
        for (u32 q = 0; q < POINTS; ++q) {
            T value = 0, slopes[DIMENSION] = {};
            if (FEMTILE_MASS) value = from[q * CELLS];
#pragma unroll
            for (u32 a = 0; a < (FEMTILE_STIFFNESS ? DIMENSION : 0); ++a) slopes[a] = from[((FEMTILE_MASS + a) * POINTS + q) * CELLS];
            integrate(r, value, slopes, table, q);
        }
#pragma unroll
        for (u32 n = 0; n < NODES; ++n) shared[n * TOGETHER * CELLS + item] = r[n];
    }
}
#else
__device__ inline void apply_cell(T* slots, const Tangent& tangent, const Table& table) {
    T u[TOGETHER][NODES], r[TOGETHER][NODES] = {};
#pragma unroll
    for (u32 n = 0; n < NODES; ++n) {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) u[c][n] = slots[(n * TOGETHER + c) * CELLS];
    }
#pragma unroll FEMTILE_UNROLL
    for (u32 q = 0; q < POINTS; ++q) {
        T values[TOGETHER], slopes[TOGETHER][DIMENSION];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) evaluate(values[c], slopes[c], u[c], table, q);
        tangent.act(values, slopes, q, table.weight(q));
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) integrate(r[c], values[c], slopes[c], table, q);
    }
#pragma unroll
    for (u32 n = 0; n < NODES; ++n) {
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) slots[(n * TOGETHER + c) * CELLS] = r[c][n];
    }
}
#endif

// Brings the places of a patch to shared memory, from where the loops over them wait a tenth of the time.
__device__ inline void load_places(unsigned short* to, const unsigned short* from) {
    const u32 N = CELLS * NODES;
    if (N % 2 == 0) {
        for (u32 i = threadIdx.x; i < N / 2; i += THREADS) ((u32*)to)[i] = __ldg((const u32*)from + i);
    } else {
        for (u32 i = threadIdx.x; i < N; i += THREADS) to[i] = __ldg(from + i);
    }
}

// A patch for each block.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS) simplices_apply(
    T* y, T* shares, const T* x, Patches patches, Hook hook) {
    if (hook.is_idle()) return;
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Patch patch(patches.words + 4 * blockIdx.x);
    const u64 before = (u64)blockIdx.x * CELLS;
    const u32 n_cells = patches.n_cells - before < CELLS ? (u32)(patches.n_cells - before) : CELLS;
    const T* const numbers = patches.numbers + before * CELL_NUMBERS;
    const Table table{patches.tables};
#if !FEMTILE_STAGED
    const bool is_cell = threadIdx.x < n_cells;
    // Before the unknowns, so that both arrive at the same time.
    const Tangent tangent(numbers + threadIdx.x, is_cell);
#endif
    const u32* const dofs = patches.dofs + patch.first;
    const unsigned short* const ends = patches.ends + patch.first;
    unsigned short* const places = (unsigned short*)(shared + OF_VALUES);
    load_places(places, patches.places + before * NODES);
    __syncthreads();
    for (u32 i = threadIdx.x; i < patch.n; i += THREADS) {
        const u32 dof = __ldg(dofs + i);
        const u32 begin = i > 0 ? ends[i - 1] : 0, end = ends[i];
        T values[TOGETHER];
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) values[c] = dof & CONSTRAINED ? (T)0 : __ldg(x + (u64)dof * TOGETHER + c);
#pragma unroll 4
        for (u32 k = begin; k < end; ++k) {
            T* const to = shared + places[k];
#pragma unroll
            for (u32 c = 0; c < TOGETHER; ++c) to[c * CELLS] = values[c];
        }
    }
    __syncthreads();
#if FEMTILE_STAGED
    apply_cells(shared, numbers, table, n_cells);
#else
    if (is_cell) apply_cell(shared + threadIdx.x, tangent, table);
#endif
    __syncthreads();
    for (u32 i = threadIdx.x; i < patch.n; i += THREADS) {
        const u32 dof = __ldg(dofs + i);
        const u32 begin = i > 0 ? ends[i - 1] : 0, end = ends[i];
        T sums[TOGETHER] = {};
#pragma unroll 4
        for (u32 k = begin; k < end; ++k) {
            const T* const from = shared + places[k];
#pragma unroll
            for (u32 c = 0; c < TOGETHER; ++c) sums[c] += from[c * CELLS];
        }
        if (dof & CONSTRAINED) continue;
        T* const to = i < patch.n_own ? y + (u64)dof * TOGETHER : shares + (u64)(patch.first_share + i - patch.n_own) * TOGETHER;
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) to[c] = sums[c];
    }
}

// y = the sum of the separate sums of a row, in the order of the patches, from begins[i] to begins[i + 1]; zero if there are none.
// One thread per row and component.
extern "C" __global__ void simplices_sum(
    T* y, const T* shares, const u32* rows, const u32* begins, const u32* places, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x, i = at / TOGETHER;
    const u32 component = (u32)(at % TOGETHER);
    if (i >= n) return;
    T sum = 0;
    for (u32 k = begins[i]; k < begins[i + 1]; ++k) sum += shares[(u64)places[k] * TOGETHER + component];
    y[(u64)rows[i] * TOGETHER + component] = sum;
}
