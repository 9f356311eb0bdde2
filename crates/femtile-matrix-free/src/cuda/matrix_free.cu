// y = A x for the operator of sigma grad u . grad v + lambda u v on hexahedra, computed cell by cell:
//   A = sum over cells of  R^T B^T (D^T G D + mu) B R,
// where R gathers the unknowns of a cell, B evaluates at the points, D differentiates there, G and mu are the metric.
//
// A block visits batches of cells one after the other. A thread holds a column of nodes and of points along the third
// axis in registers; along the other two axes, lines are read from shared memory, a line per thread. Cells of a batch
// share nothing, and a block adds to values it wrote in an earlier batch: so sums have a fixed order without atomics.
// Values that several blocks share go to separate places, which matrix_free_sum adds.
//
// Of several components some are computed at the same time, with the metric of a point in registers; they have tensors of
// their own.
#include "femtile.cuh"
#include "hook.cuh"
#include "lines.cuh"
#include "gather_scatter.cuh"
#include "metric.cuh"

// A thread in a cell of its batch: its lines of the three tensors of the first component; those of the next follow after FIELD
// entries each.
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

// Calls `act` with the number of each component and the start of its tensors.
template <typename Act>
__device__ inline void for_components(const Act& act) {
#pragma unroll
    for (u32 c = 0; c < TOGETHER; ++c) act(c, c * FIELD);
}

// Interpolates u to a column of points; the values also lie in `values`.
__device__ inline void interpolate(
    T (&at_points)[TOGETHER][Q], const T (&u)[TOGETHER][N], const Place& place, bool is_active) {
    const auto values = [&](u32 field, u32 line) { return place.values + field + line; };
#if FEMTILE_COLLOCATED
    for_components([&](u32 c, u32 field) {
#pragma unroll
        for (u32 k = 0; k < Q; ++k) at_points[c][k] = u[c][k];
        if (is_active && FEMTILE_STIFFNESS) store_line(values(field, place.z_line()), at_points[c], LAYER);
    });
    __syncthreads();
#else
    if (is_active && place.is_node()) {
        for_components([&](u32 c, u32 field) {
            contract<Values>(at_points[c], u[c]);
            store_line(values(field, place.z_line()), at_points[c], LAYER);
        });
    }
    __syncthreads();
    if (is_active && place.is_first_node()) {
        for_components([&](u32, u32 field) {
            contract_line<Values>(values(field, place.x_line()), values(field, place.x_line()), 1);
        });
    }
    __syncthreads();
    if (is_active) {
        for_components([&](u32, u32 field) {
            contract_line<Values>(values(field, place.y_line()), values(field, place.y_line()), ROW);
        });
    }
    __syncthreads();
    if (is_active) {
        for_components([&](u32 c, u32 field) { load_line(at_points[c], values(field, place.z_line()), LAYER); });
    }
#endif
}

// The transpose of interpolate.
__device__ inline void integrate(
    T (&r)[TOGETHER][N], const T (&at_points)[TOGETHER][Q], const Place& place, bool is_active) {
    const auto values = [&](u32 field, u32 line) { return place.values + field + line; };
#if FEMTILE_COLLOCATED
    for_components([&](u32 c, u32) {
#pragma unroll
        for (u32 k = 0; k < N; ++k) r[c][k] = at_points[c][k];
    });
#else
    if (is_active) {
        for_components([&](u32 c, u32 field) {
            T line[N];
            contract<Transposed<Values>>(line, at_points[c]);
            store_line(values(field, place.z_line()), line, LAYER);
        });
    }
    __syncthreads();
    if (is_active && place.b < N) {
        for_components([&](u32, u32 field) {
            contract_line<Transposed<Values>>(values(field, place.y_line()), values(field, place.y_line()), ROW);
        });
    }
    __syncthreads();
    if (is_active && place.is_node()) {
        for_components([&](u32, u32 field) {
            contract_line<Transposed<Values>>(values(field, place.x_line()), values(field, place.x_line()), 1);
        });
    }
    __syncthreads();
    if (is_active && place.is_node()) {
        for_components([&](u32 c, u32 field) { load_line(r[c], values(field, place.z_line()), LAYER); });
    }
#endif
}

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

// Applies D^T G D + mu to values at a column of points, which also lie in `values`; `of_cell` is the metric of the
// cell. Calls `meanwhile` when the metric is no longer needed, and adds the column's part of x.A x to `product`.
template <typename Meanwhile>
__device__ inline void act(
    T (&u)[TOGETHER][Q], double& product, const Place& place, const M* of_cell, bool is_active, const Meanwhile& meanwhile) {
#if FEMTILE_METRIC != 2
    const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#if FEMTILE_STIFFNESS
    if (is_active) {
        for_components([&](u32, u32 field) {
            const T* const values = place.values + field;
            contract_line<Slopes>(place.along_x + field + place.x_line(), values + place.x_line(), 1);
            contract_line<Slopes>(place.along_y + field + place.y_line(), values + place.y_line(), ROW);
        });
    }
    T along_z[TOGETHER][Q];
    for_components([&](u32 c, u32) { contract<Slopes>(along_z[c], u[c]); });
    __syncthreads();
    if (is_active) {
#if FEMTILE_METRIC == 2
        // Not earlier, as it takes many registers.
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
        T *const x = place.along_x + place.z_line(), *const y = place.along_y + place.z_line();
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            T slopes[TOGETHER][3], fluxes[TOGETHER][3];
            for_components([&](u32 c, u32 field) {
                slopes[c][0] = x[field + k * LAYER];
                slopes[c][1] = y[field + k * LAYER];
                slopes[c][2] = along_z[c][k];
#pragma unroll
                for (u32 axis = 0; axis < 3; ++axis) fluxes[c][axis] = slopes[c][axis];
            });
            const T mu = metric.act(fluxes, k);
            for_components([&](u32 c, u32 field) {
                add_product(product, slopes[c], fluxes[c], u[c][k], mu);
                x[field + k * LAYER] = fluxes[c][0];
                y[field + k * LAYER] = fluxes[c][1];
                along_z[c][k] = fluxes[c][2];
                u[c][k] = FEMTILE_MASS ? mu * u[c][k] : (T)0;
            });
        }
    }
    __syncthreads();
    meanwhile();
    if (is_active) {
        for_components([&](u32, u32 field) {
            T *const x = place.along_x + field + place.x_line(), *const y = place.along_y + field + place.y_line();
            contract_line<Transposed<Slopes>>(x, x, 1);
            contract_line<Transposed<Slopes>>(y, y, ROW);
        });
    }
    T sums[TOGETHER][Q];
    for_components([&](u32 c, u32) { contract<Transposed<Slopes>>(sums[c], along_z[c]); });
    __syncthreads();
    if (is_active) {
        for_components([&](u32 c, u32 field) {
#pragma unroll
            for (u32 k = 0; k < Q; ++k) {
                const u32 at = field + place.z_line() + k * LAYER;
                u[c][k] += sums[c][k] + (place.along_x[at] + place.along_y[at]);
            }
        });
    }
#else
    if (is_active) {
#if FEMTILE_METRIC == 2
        const Metric metric(of_cell, place.a, place.b, is_active);
#endif
#pragma unroll
        for (u32 k = 0; k < Q; ++k) {
            T none[TOGETHER][3] = {};
            const T mu = metric.act(none, k);
            for_components([&](u32 c, u32) {
                add_product(product, none[c], none[c], u[c][k], mu);
                u[c][k] *= mu;
            });
        }
    }
    meanwhile();
#endif
}

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
            T nodes[TOGETHER][N] = {}, before[TOGETHER][N] = {}, u[TOGETHER][Q] = {};
            if (has_nodes) gather(nodes, x + first, column, now, lists);
            interpolate(u, nodes, place, has_cell);
            act(u, product, place, of_cell, has_cell, [&]() {
                if (IS_EAGER && has_nodes) targets.read(before, first, column, now, lists);
            });
            integrate(nodes, u, place, has_cell);
            if (!IS_EAGER && has_nodes) targets.read(before, first, column, now, lists);
            if (has_nodes) {
                for_components([&](u32 c, u32) {
#pragma unroll
                    for (u32 k = 0; k < N; ++k) nodes[c][k] += before[c][k];
                });
                targets.write(nodes, first, column, now, lists);
            }
        }
    }
#if FEMTILE_PRODUCT
    hook.add(product);
    hook.finish();
#endif
}
