// y = A x for the operator of sigma grad u . grad v + lambda u v on quadrilaterals or hexahedra, computed cell by cell:
//   A = sum over cells of  R^T B^T (D^T G D + mu) B R,
// where R gathers the unknowns of a cell, B evaluates at the points, D differentiates there, G and mu are the metric; or, with
// FEMTILE_TANGENT, for any form, with its tangent in place of G and mu.
//
// A block visits batches of cells one after the other. A thread holds a column of nodes and of points along the last axis in
// registers; along the other axes, lines are read from shared memory, a line per thread. Cells of a batch share nothing, and a
// block adds to values it wrote in an earlier batch: so sums have a fixed order without atomics. Values that several blocks
// share go to separate places, which matrix_free_sum adds.
//
// Of several components some are computed at the same time, and all in as many passes as that takes. The operator of a cell is
// apply_cell: of quadrilaterals in quadrilaterals.cuh, of hexahedra in hexahedra.cuh and, for several components and forms,
// fields.cuh.
#include "femtile.cuh"
#include "hook.cuh"
#include "lines.cuh"
#include "gather_scatter.cuh"
#if FEMTILE_DIMENSION == 2
#include "quadrilaterals.cuh"
#elif FEMTILE_TOGETHER == 1 && !FEMTILE_TANGENT
#include "hexahedra.cuh"
#else
#include "fields.cuh"
#endif

// Block i visits the batches from begins[i] to begins[i + 1]. If the hook only needs x.A x, it is computed at the
// points; on a part, by the rank that has the inner unknowns of a cell.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS, FEMTILE_BLOCKS) matrix_free_apply(
    T* y, T* shares, Source x, const u32* begins, const u32* cells, const u32* lists, Metrics metrics, Hook hook) {
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
        const T* const of_cell = metrics.numbers + (u64)__ldg(words + METRIC_CELL) * CELL_NUMBERS;
        const Targets targets(y, shares, column, words);
        words += FEMTILE_CELLS * CELL_WORDS;
        if (batch + 1 < end) next = column.of_cell(words);
        const bool has_cell = is_active && !now.is_empty(), has_nodes = is_node && has_cell;
#pragma unroll 1
        for (u32 first = 0; first < COMPONENTS; first += TOGETHER) {
            T nodes[TOGETHER][N] = {}, before[TOGETHER][N] = {};
            if (has_nodes) gather(nodes, x.from(first), column, now, lists);
            const double earlier = product;
            apply_cell(nodes, product, place, of_cell, has_cell, [&]() {
                if (READS_AHEAD && has_nodes) targets.read(before, first, column, now, lists);
            });
            if (now.is_of_other()) product = earlier;
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
