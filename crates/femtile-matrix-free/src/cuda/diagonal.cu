// The diagonal of the operator of sigma grad u . grad v + lambda u v on quadrilaterals or hexahedra, computed cell by cell:
//   d_i = sum over points q of  sum_ab G_ab(q) d_a phi_i(q) d_b phi_i(q) + mu(q) phi_i(q)^2.
// Shape functions are products, so each entry of G is contracted with products of two 1-D tables along each axis:
// values times values, slopes times values, slopes times slopes.
//
// Blocks, batches, columns of threads and places of sums are those of matrix_free_apply. All components have the same
// diagonal, which is computed once. The loop over entries is not unrolled: it runs once a solve, and would take seconds to
// compile.
#include "femtile.cuh"
#include "lines.cuh"
#include "gather_scatter.cuh"
#include "metric.cuh"
#include "diagonal_tables.cuh"

// Axes of the entries, and those of mu, which are none.
#if FEMTILE_DIMENSION == 3
__constant__ u32 AXES[7][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}, {3, 3}};
#else
__constant__ u32 AXES[4][2] = {{0, 0}, {1, 1}, {0, 1}, {2, 2}};
#endif
const u32 LAST = DIMENSION - 1;

// to_i = sum_q table_qi from_q for the product of tables with this number of slopes.
__device__ inline void contract_squares(T (&to)[N], const T (&from)[Q], u32 n_slopes) {
    const T* const table = SQUARES + n_slopes * Q * N;
#pragma unroll
    for (u32 i = 0; i < N; ++i) to[i] = 0;
#pragma unroll
    for (u32 q = 0; q < Q; ++q) {
#pragma unroll
        for (u32 i = 0; i < N; ++i) to[i] += table[q * N + i] * from[q];
    }
}

__device__ inline void contract_squares_line(T* line, u32 stride, u32 n_slopes) {
    T from[Q], to[N];
    load_line(from, line, stride);
    contract_squares(to, from, n_slopes);
    store_line(line, to, stride);
}

// Block i visits the batches from begins[i] to begins[i + 1].
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) matrix_free_diagonal(
    T* y, T* shares, const u32* begins, const u32* cells, const u32* lists, Metrics metrics) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const u32 cell = threadIdx.x / LAYER_POINTS, within = threadIdx.x % LAYER_POINTS;
    const bool is_thread = cell < FEMTILE_CELLS;
    const u32 slot = is_thread ? cell : 0, a = within % Q, b = DIMENSION == 3 ? within / Q : 0;
    const bool is_column = is_thread && a < N && b < N;
    const Column column(is_column ? a : 0, is_column ? b : 0);
    T* const values = shared + slot * FIELD;
    const u32* words = cells + ((u64)begins[blockIdx.x] * FEMTILE_CELLS + slot) * CELL_WORDS;
    for (u32 batch = begins[blockIdx.x]; batch < begins[blockIdx.x + 1]; ++batch) {
        const CellColumn now = column.of_cell(words);
        const Targets targets(y, shares, column, words);
        const bool is_active = is_thread && !now.is_empty(), is_node = is_column && is_active;
        const Metric of_cell(metrics.numbers + (u64)__ldg(words + METRIC_CELL) * CELL_NUMBERS, a, b, is_active);
        words += FEMTILE_CELLS * CELL_WORDS;
        T sums[1][N] = {}, before[1][N] = {};
#pragma unroll 1
        for (u32 entry = FEMTILE_STIFFNESS ? 0 : OF_TENSOR; entry < OF_TENSOR + FEMTILE_MASS; ++entry) {
            const u32 first = AXES[entry][0], second = AXES[entry][1];
            T* const column_of_points = values + a + b * ROW;
#pragma unroll 1
            for (u32 k = 0; k < Q; ++k) {
                T slopes[1][DIMENSION];
#pragma unroll
                for (u32 d = 0; d < DIMENSION; ++d) slopes[0][d] = (T)(first == d);
                T of_axes = is_active ? of_cell.act(slopes, k) : (T)0;
#pragma unroll
                for (u32 d = 0; d < DIMENSION; ++d) of_axes = second == d ? slopes[0][d] : of_axes;
                // Entries beside the diagonal count twice.
                if (is_active) column_of_points[k * COLUMN] = (first == second ? (T)1 : (T)2) * of_axes;
            }
            if (is_active) contract_squares_line(column_of_points, COLUMN, (first == LAST) + (second == LAST));
            __syncthreads();
#if FEMTILE_DIMENSION == 3
            if (is_active && b < N) {
                contract_squares_line(values + a + b * LAYER, ROW, (first == 1) + (second == 1));
            }
            __syncthreads();
#endif
            if (is_node) contract_squares_line(values + a * ROW + b * LAYER, 1, (first == 0) + (second == 0));
            __syncthreads();
            // From here to the next barrier a thread has its own column alone.
            if (is_node) {
#pragma unroll
                for (u32 k = 0; k < N; ++k) sums[0][k] += values[a + b * ROW + k * COLUMN];
            }
        }
        if (is_node) {
            targets.read(before, 0, column, now, lists);
#pragma unroll
            for (u32 k = 0; k < N; ++k) sums[0][k] += before[0][k];
            targets.write(sums, 0, column, now, lists);
        }
    }
}
