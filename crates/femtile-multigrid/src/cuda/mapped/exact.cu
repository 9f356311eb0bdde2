// Exact local solves on vertex patches with coefficient jumps, from a residual r:
//   x_i = x_i + w_i A_ii^-1 w_i r_i,
// with the inverse of the kind of each patch, up to a factor. Weights w are those of the other patches, whose kernel adds
// nothing here. A block processes a patch, a warp per row; patches of a colour write disjoint nodes.
#include "femtile.cuh"
#include "colour.cuh"

const u32 K = FEMTILE_DEGREE, N = 2 * K - 1, MIDDLE = K - 1, N_WARPS = FEMTILE_THREADS / WARP;

// The inner nodes of a patch along an axis: those of the cells that exist, without closed ends.
struct Line {
    u32 vertex, first, n;
    // Whether no other patch has the cell before, or behind, the vertex.
    bool has_first_alone, has_last_alone;

    __device__ inline Line() {}
    __device__ inline Line(const Colour& colour, u32 vertex, u32 axis) : vertex(vertex) {
        const u32 cells = (u32)colour.cells[axis];
        first = vertex == 0 ? 0 : K * (vertex - 1) + 1;
        n = (vertex == cells ? K * cells + 1 : K * (vertex + 1)) - first;
        has_first_alone = vertex == 1 && colour.first[axis] == 1;
        has_last_alone = vertex + 1 == cells && colour.last[axis] + 1 == cells;
    }

    // The 1-D weight of an inner node.
    __device__ inline T weight(const T* hats, u32 i) const {
        const u32 node = first + i, middle = K * vertex;
        const bool is_alone = (node < middle && has_first_alone) || (node > middle && has_last_alone);
        return is_alone ? (T)1 : __ldg(hats + node + MIDDLE - middle);
    }
};

struct Lines {
    Line along[3];
    u64 row, layer;

    __device__ inline Lines(const Colour& colour, const u32* patch) : row(colour.row), layer(colour.layer) {
#pragma unroll
        for (u32 axis = 0; axis < 3; ++axis) along[axis] = Line(colour, __ldg(patch + axis), axis);
    }
    __device__ inline u32 count() const { return along[0].n * along[1].n * along[2].n; }
    // Index along each axis of an inner node.
    __device__ inline void place(u32 (&at)[3], u32 i) const {
        at[0] = i % along[0].n;
        at[1] = i / along[0].n % along[1].n;
        at[2] = i / along[0].n / along[1].n;
    }
    __device__ inline u64 node(const u32 (&at)[3]) const {
        return along[0].first + at[0] + (along[1].first + at[1]) * row + (along[2].first + at[2]) * layer;
    }
    __device__ inline T weight(const T* hats, const u32 (&at)[3]) const {
        return along[0].weight(hats, at[0]) * along[1].weight(hats, at[1]) * along[2].weight(hats, at[2]);
    }
};

// `patches`: vertex and kind, [patch][4]; `begins`: the first entry of the inverse of each kind, [n][n].
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) vertex_patch_exact(
    T* x, const T* r, const T* modes, const u32* patches, const T* scales, const u64* begins, const T* inverses,
    Colour colour) {
    FEMTILE_DYNAMIC_SHARED(T, values);
    // The patches of a colour follow one another.
    const u64 number = colour.places[0] + blockIdx.x;
    const u32* const patch = patches + 4 * number;
    const Lines lines(colour, patch);
    const u32 n = lines.count();
    const T* const hats = modes + N;
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        u32 at[3];
        lines.place(at, i);
        values[i] = lines.weight(hats, at) * r[lines.node(at)];
    }
    __syncthreads();
    const T* const inverse = inverses + __ldg(begins + __ldg(patch + 3));
    const u32 lane = threadIdx.x % WARP;
    T* const solution = values + n;
    for (u32 i = threadIdx.x / WARP; i < n; i += N_WARPS) {
        T sum = 0;
        for (u32 j = lane; j < n; j += WARP) sum += __ldg(inverse + (u64)i * n + j) * values[j];
        sum = (T)warp_sum((double)sum);
        if (lane == 0) solution[i] = sum;
    }
    __syncthreads();
    const T scale = __ldg(scales + number);
    for (u32 i = threadIdx.x; i < n; i += FEMTILE_THREADS) {
        u32 at[3];
        lines.place(at, i);
        x[lines.node(at)] += lines.weight(hats, at) * scale * solution[i];
    }
}
