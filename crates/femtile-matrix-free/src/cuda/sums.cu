// What remains of y = A x after matrix_free_apply: what several blocks have, what is constrained, and the hook.
#include "femtile.cuh"
#include "hook.cuh"

// Entities that several groups have: faces, edges and vertices, and where their shares begin. A face has two shares, the
// others those from begins[i] to begins[i + 1], counted behind the faces.
struct Shares {
    const u32* rows;
    const u32* begins;
    const u32* places;
    u64 n_faces, n_edges, n_vertices;
    u64 per_edge;
};

// y = the sum of the shares of a row, in their order. A thread takes a row.
extern "C" __global__ void matrix_free_sum(T* y, const T* values, Shares shares, Hook hook) {
    if (hook.is_idle()) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 per_edge = (u32)shares.per_edge, per_face = per_edge * per_edge;
    const u32 on_faces = (u32)shares.n_faces * per_face, on_edges = (u32)shares.n_edges * per_edge;
    u32 entity, within = 0;
    if (i < on_faces) {
        entity = i / per_face;
        within = i - entity * per_face;
        const u32 first = shares.places[2 * entity], second = shares.places[2 * entity + 1];
        y[shares.rows[entity] + within] = values[first + within] + values[second + within];
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
    T sum = values[shares.places[begin] + within] + values[shares.places[begin + 1] + within];
    for (u32 k = begin + 2; k < end; ++k) sum += values[shares.places[k] + within];
    y[shares.rows[(u32)shares.n_faces + entity] + within] = sum;
}

// y = x where it is constrained; a part of x.y where that is asked for. A thread takes a row.
extern "C" __global__ void matrix_free_keep(T* y, const T* x, const u32* rows, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[rows[i]] = x[rows[i]];
#if FEMTILE_PRODUCT
    hook.add(i < n ? (double)x[rows[i]] * x[rows[i]] : 0.0);
    hook.finish();
#endif
}

// Shows every row to the hook. A block takes FEMTILE_ROWS rows.
extern "C" __global__ void matrix_free_post(const T* y, const T* x, u64 n, Hook hook) {
    if (hook.is_idle()) return;
    const u64 begin = (u64)blockIdx.x * FEMTILE_ROWS;
    const u64 end = begin + FEMTILE_ROWS < n ? begin + FEMTILE_ROWS : n;
    for (u64 row = begin + threadIdx.x; row < end; row += blockDim.x) hook.post(row, x, y[row]);
    hook.finish();
}
