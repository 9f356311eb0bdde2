// y += sum over facets of  P^T M P x,  row by row, with the dense matrices of facets; a row may belong to several.
#include "femtile.cuh"
#include "hook.cuh"

// Rows of facets, and the matrix lines of each row, from begins[i] to begins[i + 1]. Line l has `n` entries from
// entries[l * n] on, and its facet has the unknowns dofs[l / n * n + j].
struct Facets {
    const u32* rows;
    const u32* begins;
    const u32* lines;
    const u32* dofs;
    u64 n_rows, n;
    // Values of other ranks, whose numbers follow those of x; without them all values are in x.
    const T* ghosts;
    u64 n_owned;

    __device__ inline const T* at(const T* x, u32 node, u32 components) const {
        if (ghosts && node >= n_owned) return ghosts + (node - n_owned) * components;
        return x + (u64)node * components;
    }
};

// Components of a field, whose values at a node are consecutive: rows and unknowns of facets count nodes.
const u32 COMPONENTS = FEMTILE_COMPONENTS;

// One warp per row and component, its lanes take the entries of a line. Adds to x.y if requested.
extern "C" __global__ void matrix_free_facets(T* y, const T* x, const T* entries, Facets facets, Hook hook) {
    if (hook.is_idle()) return;
    const u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP, i = at / COMPONENTS;
    const u32 component = (u32)(at % COMPONENTS);
    const u32 lane = threadIdx.x % WARP, n = (u32)facets.n;
    const bool has_row = i < facets.n_rows;
    T sum = 0;
    for (u32 k = has_row ? facets.begins[i] : 0; has_row && k < facets.begins[i + 1]; ++k) {
        const u32 line = facets.lines[k];
        const T* const of_line = entries + (u64)line * n;
        const u32* const dofs = facets.dofs + line / n * n;
        for (u32 j = lane; j < n; j += WARP) sum += of_line[j] * facets.at(x, dofs[j], COMPONENTS)[component];
    }
    for (u32 half = WARP / 2; half > 0; half /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, (int)half);
    const bool is_first = has_row && lane == 0;
    const u32 row = is_first ? facets.rows[i] * COMPONENTS + component : 0;
    if (is_first) y[row] += sum;
#if FEMTILE_PRODUCT
    hook.add(is_first ? (double)x[row] * sum : 0.0);
    hook.finish();
#endif
}
