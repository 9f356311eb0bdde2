// The rest of y = A x after matrix_free_apply: shared values, constrained rows, and the hook.
#include "femtile.cuh"
#include "hook.cuh"

// Entities that several groups have: faces, edges and vertices, and the start of their shares. A face has two shares,
// the others those from begins[i] to begins[i + 1], counted after the faces. The faces of quadrilaterals are their edges.
struct Shares {
    const u32* rows;
    const u32* begins;
    const u32* places;
    u64 n_faces, n_edges, n_vertices;
    u64 per_face, per_edge;
};

// Components of a field, whose values at a node are consecutive: rows, shares and lists count nodes.
const u32 COMPONENTS = FEMTILE_COMPONENTS;

// y = the sum of the shares of a row, in order. One thread per row and component.
extern "C" __global__ void matrix_free_sum(T* y, const T* values, Shares shares, Hook hook) {
    if (hook.is_idle()) return;
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x, i = at / COMPONENTS, component = at % COMPONENTS;
    const u32 per_edge = (u32)shares.per_edge, per_face = (u32)shares.per_face;
    const u32 on_faces = (u32)shares.n_faces * per_face, on_edges = (u32)shares.n_edges * per_edge;
    u32 entity, within = 0;
    if (i < on_faces) {
        entity = i / per_face;
        within = i - entity * per_face;
        const u32 first = shares.places[2 * entity], second = shares.places[2 * entity + 1];
        y[(shares.rows[entity] + within) * COMPONENTS + component] =
            values[(first + within) * COMPONENTS + component] + values[(second + within) * COMPONENTS + component];
        return;
    }
    if (i - on_faces < on_edges) {
        entity = (i - on_faces) / per_edge;
        within = i - on_faces - entity * per_edge;
    } else {
        entity = i - on_faces - on_edges + (u32)shares.n_edges;
        if (entity >= shares.n_edges + shares.n_vertices) return;
    }
    const u32 begin = shares.begins[entity], end = shares.begins[entity + 1];
    const auto share = [&](u32 k) { return values[(shares.places[k] + within) * COMPONENTS + component]; };
    T sum = share(begin) + share(begin + 1);
    for (u32 k = begin + 2; k < end; ++k) sum += share(k);
    y[(shares.rows[(u32)shares.n_faces + entity] + within) * COMPONENTS + component] = sum;
}

// y = x in `n` constrained rows of all components; adds part of x.y if requested. One thread per row and component.
extern "C" __global__ void matrix_free_keep(T* y, const T* x, const u32* rows, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const bool has_row = i < n * COMPONENTS;
    const u32 row = has_row ? rows[i / COMPONENTS] * COMPONENTS + (u32)(i % COMPONENTS) : 0;
    if (has_row) y[row] = x[row];
#if FEMTILE_PRODUCT
    hook.add(has_row ? (double)x[row] * x[row] : 0.0);
    hook.finish();
#endif
}

// Calls the hook for every row. FEMTILE_ROWS rows per block.
extern "C" __global__ void matrix_free_post(const T* y, const T* x, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 begin = (u64)blockIdx.x * FEMTILE_ROWS;
    const u64 end = begin + FEMTILE_ROWS < n ? begin + FEMTILE_ROWS : n;
    for (u64 row = begin + threadIdx.x; row < end; row += blockDim.x) hook.post(row, x, y[row]);
    hook.finish();
}
