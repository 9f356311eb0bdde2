// y = A x for the operator of sigma grad u . grad v + lambda u v on hexahedra, computed cell by cell:
//   A = sum over cells of  R^T B^T (D^T G D + mu) B R,
// where R gathers the unknowns of a cell, B evaluates at the points, D differentiates there, G and mu are the metric.
//
// A block visits batches of cells one after the other. A thread holds a column of nodes and of points along the third
// axis in registers; along the other two axes, lines are read from shared memory, a line per thread. Cells of a batch
// share nothing, and a block adds to values it wrote in an earlier batch: so sums have a fixed order without atomics.
// Values that several blocks share go to separate places, which matrix_free_sum adds.
//
// Of several components some are computed at the same time (fields.cuh), and all in as many passes as that takes.
#include "femtile.cuh"
#include "hook.cuh"
#include "lines.cuh"
#include "gather_scatter.cuh"
#include "metric.cuh"

// A thread in a cell of its batch: its lines of three tensors.
struct Place {
    T *values, *along_x, *along_y;
    u32 a, b;

    __device__ inline Place(T* shared, u32 cell, u32 within) {
        values = shared + cell * TOGETHER * FIELD;
        along_x = values + TENSOR;
        along_y = along_x + TENSOR;
        a = within % Q;
        b = within / Q;
    }
    // Start of a line along the first, second and third axis.
    __device__ inline u32 x_line() const { return a * ROW + b * LAYER; }
    __device__ inline u32 y_line() const { return a + b * LAYER; }
    __device__ inline u32 z_line() const { return a + b * ROW; }
    // Whether there are nodes here, for lines and for columns.
    __device__ inline bool is_first_node() const { return a < N; }
    __device__ inline bool is_node() const { return a < N && b < N; }
};

#if FEMTILE_TOGETHER == 1
// Interpolates u to a column of points; the values also lie in `values`.
__device__ inline void interpolate(T (&at_points)[Q], const T (&u)[N], const Place& place, bool is_active) {
#if FEMTILE_COLLOCATED
#pragma unroll
    for (u32 k = 0; k < Q; ++k) at_points[k] = u[k];
    if (is_active && FEMTILE_STIFFNESS) store_line(place.values + place.z_line(), at_points, LAYER);
    __syncthreads();
#else
    if (is_active && place.is_node()) {
        contract<Values>(at_points, u);
        store_line(place.values + place.z_line(), at_points, LAYER);
    }
    __syncthreads();
    if (is_active && place.is_first_node()) {
        contract_line<Values>(place.values + place.x_line(), place.values + place.x_line(), 1);
    }
    __syncthreads();
    if (is_active) contract_line<Values>(place.values + place.y_line(), place.values + place.y_line(), ROW);
    __syncthreads();
    if (is_active) load_line(at_points, place.values + place.z_line(), LAYER);
#endif
}

// The transpose of interpolate.
__device__ inline void integrate(T (&r)[N], const T (&at_points)[Q], const Place& place, bool is_active) {
#if FEMTILE_COLLOCATED
#pragma unroll
    for (u32 k = 0; k < N; ++k) r[k] = at_points[k];
#else
    if (is_active) {
        T line[N];
        contract<Transposed<Values>>(line, at_points);
        store_line(place.values + place.z_line(), line, LAYER);
    }
    __syncthreads();
    if (is_active && place.b < N) {
        contract_line<Transposed<Values>>(place.values + place.y_line(), place.values + place.y_line(), ROW);
    }
    __syncthreads();
    if (is_active && place.is_node()) {
        contract_line<Transposed<Values>>(place.values + place.x_line(), place.values + place.x_line(), 1);
    }
    __syncthreads();
    if (is_active && place.is_node()) load_line(r, place.values + place.z_line(), LAYER);
#endif
}

#endif

// Adds a point's part of x.A x, if requested.
__device__ inline void add_product(double& product, const T (&slope)[3], const T (&flux)[3], T value, T mu) {
#if FEMTILE_PRODUCT
#if FEMTILE_STIFFNESS
    product += (double)slope[0] * flux[0] + (double)slope[1] * flux[1] + (double)slope[2] * flux[2];
#endif
#if FEMTILE_MASS
    product += (double)mu * value * value;
#endif
#endif
}

#if FEMTILE_TOGETHER == 1
// Applies D^T G D + mu to values at a column of points, which also lie in `values`; `of_cell` is the metric of the
// cell. Calls `meanwhile` when the metric is no longer needed, and adds the column's part of x.A x to `product`.
template <typename Meanwhile>
__device__ inline void act(
    T (&u)[Q], double& product, const Place& place, const M* of_cell, bool is_active, const Meanwhile& meanwhile) {
#if FEMTILE_METRIC != 2
    const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#if FEMTILE_STIFFNESS
    if (is_active) {
        contract_line<Slopes>(place.along_x + place.x_line(), place.values + place.x_line(), 1);
        contract_line<Slopes>(place.along_y + place.y_line(), place.values + place.y_line(), ROW);
    }
    T along_z[Q];
    contract<Slopes>(along_z, u);
    __syncthreads();
    if (is_active) {
#if FEMTILE_METRIC == 2
        // Not earlier, as it takes many registers.
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
        T *const x = place.along_x + place.z_line(), *const y = place.along_y + place.z_line();
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            const T slope[3] = {x[k * LAYER], y[k * LAYER], along_z[k]};
            T fluxes[1][3] = {{slope[0], slope[1], slope[2]}};
            const T mu = metric.act(fluxes, k);
            const T(&g)[3] = fluxes[0];
            add_product(product, slope, g, u[k], mu);
            x[k * LAYER] = g[0];
            y[k * LAYER] = g[1];
            along_z[k] = g[2];
            u[k] = FEMTILE_MASS ? mu * u[k] : (T)0;
        }
    }
    __syncthreads();
    meanwhile();
    if (is_active) {
        contract_line<Transposed<Slopes>>(place.along_x + place.x_line(), place.along_x + place.x_line(), 1);
        contract_line<Transposed<Slopes>>(place.along_y + place.y_line(), place.along_y + place.y_line(), ROW);
    }
    T sums[Q];
    contract<Transposed<Slopes>>(sums, along_z);
    __syncthreads();
    if (is_active) {
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            const u32 at = place.z_line() + k * LAYER;
            u[k] += sums[k] + (place.along_x[at] + place.along_y[at]);
        }
    }
#else
    if (is_active) {
#if FEMTILE_METRIC == 2
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            T none[1][3] = {};
            const T mu = metric.act(none, k);
            add_product(product, none[0], none[0], u[k], mu);
            u[k] *= mu;
        }
    }
    meanwhile();
#endif
}

// Applies the operator of a cell to the values at a column of nodes. Calls `meanwhile` when the metric is no longer needed.
template <typename Meanwhile>
__device__ inline void apply_cell(
    T (&nodes)[TOGETHER][N], double& product, const Place& place, const M* of_cell, bool is_active,
    const Meanwhile& meanwhile) {
    T u[Q] = {};
    interpolate(u, nodes[0], place, is_active);
    act(u, product, place, of_cell, is_active, meanwhile);
    integrate(nodes[0], u, place, is_active);
}
#else
#include "fields.cuh"
#endif

// Block i visits the batches from begins[i] to begins[i + 1]. If the hook only needs x.A x, it is computed at the
// points.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS) matrix_free_apply(
    T* y, T* shares, const T* x, const u32* begins, const u32* cells, const u32* lists, Metrics metrics, Hook hook) {
    if (hook.is_idle()) return;
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 cell = threadIdx.x / LAYER_POINTS;
    const bool is_active = cell < FEMTILE_CELLS;
    const u32 slot = is_active ? cell : 0;
    const Place place(shared, slot, threadIdx.x % LAYER_POINTS);
    const bool is_node = is_active && place.is_node();
    const Column column(is_node ? place.a : 0, is_node ? place.b : 0);
    const u32 begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
    const u32* words = cells + ((u64)begin * FEMTILE_CELLS + slot) * CELL_WORDS;
    CellColumn next = column.of_cell(words);
    double product = 0.0;
    for (u32 batch = begin; batch < end; ++batch) {
        const CellColumn now = next;
        const M* const of_cell = metrics.numbers + (u64)__ldg(words + METRIC_CELL) * CELL_NUMBERS;
        const Targets targets(y, shares, column, words);
        words += FEMTILE_CELLS * CELL_WORDS;
        if (batch + 1 < end) next = column.of_cell(words);
        const bool has_cell = is_active && !now.is_empty(), has_nodes = is_node && has_cell;
#pragma unroll 1
        for (u32 first = 0; first < COMPONENTS; first += TOGETHER) {
            T nodes[TOGETHER][N] = {}, before[TOGETHER][N] = {};
            if (has_nodes) gather(nodes, x + first, column, now, lists);
            apply_cell(nodes, product, place, of_cell, has_cell, [&]() {
                if (READS_AHEAD && has_nodes) targets.read(before, first, column, now, lists);
            });
            if (!READS_AHEAD && has_nodes) targets.read(before, first, column, now, lists);
            if (has_nodes) {
#pragma unroll
                for (u32 c = 0; c < TOGETHER; ++c) {
#pragma unroll
                    for (u32 k = 0; k < N; ++k) nodes[c][k] += before[c][k];
                }
                targets.write(nodes, first, column, now, lists);
            }
        }
    }
#if FEMTILE_PRODUCT
    hook.add(product);
    hook.finish();
#endif
}
