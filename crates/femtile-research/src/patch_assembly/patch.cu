// Assembly of linear elements by patches, `[fu2014]` section 4, one block per patch, one thread per element:
//
//   A_ij = sum_T |T| (grad phi_i . sigma grad phi_j + mean(lambda phi_i phi_j))   for i <= j,
//   b_i  = sum_T |T| mean(f phi_i).
//
// Nodes are numbered patch by patch, and an element belongs to the patch of its first node. Contributions to rows of
// its patch are summed in shared memory, those to other rows in separate arrays, the paper's values_B; a second kernel
// adds both. Atomic operations add in any order.
#include "element.cuh"

typedef FEMTILE_OFFSET Offset;

// Most threads of a block; a block has as many as the largest patch has elements.
const u32 THREADS = FEMTILE_THREADS;
// Lanes that share a rim row.
const u32 RIM_LANES = 8;

// Lists of the patches; see `Lists` on the host.
struct Patches {
    // Start of the nodes and the elements of each patch, and the ends.
    const u32 *rows, *elements;
    // The number of each element in the mesh.
    const u32* cells;
    // The first corners of all elements, then the second ones and so on; for points, the x coordinates first.
    const u32* corners;
    const double* points;
    u64 n_nodes, n_elements;
};

// The upper half of the matrix without values.
struct Pattern {
    const Offset* offsets;
    const u32* columns;
};

// Contributions of elements to rows of other patches.
struct Rim {
    double *values, *rhs;
};

struct Patch {
    u32 row, n_rows, element, n_elements, n_entries;
    Offset entry;
};

__device__ inline Patch patch_at(const Patches& patches, const Pattern& pattern, u32 number) {
    Patch patch;
    patch.row = patches.rows[number];
    patch.n_rows = patches.rows[number + 1] - patch.row;
    patch.element = patches.elements[number];
    patch.n_elements = patches.elements[number + 1] - patch.element;
    patch.entry = pattern.offsets[patch.row];
    patch.n_entries = (u32)(pattern.offsets[patch.row + patch.n_rows] - patch.entry);
    return patch;
}

// The rows of a patch in shared memory; they replace the coordinates of its nodes.
struct Tile {
    double *values, *rhs;
    // The columns of all entries, the start of each row among them, and the end.
    u32 *columns, *starts;
};

__device__ inline Tile tile_of(double* shared, const Patch& patch) {
    Tile tile;
    tile.values = shared;
    tile.rhs = tile.values + patch.n_entries;
    tile.columns = reinterpret_cast<u32*>(tile.rhs + patch.n_rows);
    tile.starts = tile.columns + patch.n_entries;
    return tile;
}

// The matrix of an element, off-diagonal by edges, and its load.
struct Element {
    double edges[EDGES], diagonal[CORNERS], load[CORNERS];
    bool is_sound;
};

// Terms that are constant on a cell: mean(phi_a phi_b) = (1 + delta_ab) / ((d + 1)(d + 2)), mean(phi_a) = 1 / (d + 1).
__device__ inline void add_by_cell(Element& out, SigmaMean& sigma, const Form& form, u64 cell, int tag) {
    if (SIGMA_BY_CELL) see(sigma, out.is_sound, 1.0, sigma_at(form, cell, tag, 0.0, 0.0, 0.0));
    if (LAMBDA_BY_CELL) {
        const double lambda = lambda_at(form, cell, tag, 0.0, 0.0, 0.0);
        const double mean = lambda * (1.0 / ((DIMENSION + 1.0) * (DIMENSION + 2.0)));
        out.is_sound &= is_reaction(lambda);
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) out.diagonal[a] = 2.0 * mean;
#pragma unroll
        for (u32 k = 0; k < EDGES; ++k) out.edges[k] = mean;
    }
    if (SOURCE_BY_CELL) {
        const double f = source_at(form, cell, tag, 0.0, 0.0, 0.0);
        out.is_sound &= is_finite(f);
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) out.load[a] = f / CORNERS;
    }
}

// Terms averaged over the points of a rule, each with its weight and barycentric coordinates.
__device__ inline void add_by_point(
    Element& out, SigmaMean& sigma, const Form& form, u64 cell, int tag, const Vector (&p)[CORNERS]) {
#pragma unroll 1
    for (u32 q = 0; q < N_POINTS; ++q) {
        const double* const point = rule_point(form, q);
        const double weight = point[0];
        const Vector at = point_at(point, p);
        if (SIGMA == BY_POINT) see(sigma, out.is_sound, weight, sigma_at(form, cell, tag, at.x, at.y, at.z));
        if (LAMBDA == BY_POINT) {
            const double lambda = lambda_at(form, cell, tag, at.x, at.y, at.z);
            out.is_sound &= is_reaction(lambda);
#pragma unroll
            for (u32 a = 0; a < CORNERS; ++a) {
                const double share = weight * lambda * point[1 + a];
                out.diagonal[a] += share * point[1 + a];
#pragma unroll
                for (u32 b = a + 1; b < CORNERS; ++b) out.edges[edge(a, b)] += share * point[1 + b];
            }
        }
        if (SOURCE == BY_POINT) {
            const double f = source_at(form, cell, tag, at.x, at.y, at.z);
            out.is_sound &= is_finite(f);
#pragma unroll
            for (u32 a = 0; a < CORNERS; ++a) out.load[a] += weight * f * point[1 + a];
        }
    }
}

__device__ inline void element_matrix(Element& out, const Form& form, u64 cell, const Vector (&p)[CORNERS]) {
    Vector g[DIMENSION];
    const double volumes = area_vectors(g, p), factorial = DIMENSION == 3 ? 6.0 : 2.0;
    const double measure = volumes * (1.0 / factorial), scale = (1.0 / factorial) / volumes;
    out.is_sound = measure >= SMALLEST && measure <= LARGEST;
    SigmaMean sigma = {};
    const int tag = form.tags != 0 ? form.tags[cell] : 0;
    add_by_cell(out, sigma, form, cell, tag);
    if (VARIES_IN_CELLS) add_by_point(out, sigma, form, cell, tag, p);
    double stiffness[EDGES];
    stiffness_of_edges(stiffness, g, sigma, scale);
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) {
        double others = 0.0;
#pragma unroll
        for (u32 b = 0; b < CORNERS; ++b) {
            if (b != a) others += stiffness[edge(a, b)];
        }
        out.diagonal[a] = measure * out.diagonal[a] - others;
        out.load[a] *= measure;
    }
#pragma unroll
    for (u32 k = 0; k < EDGES; ++k) out.edges[k] = stiffness[k] + measure * out.edges[k];
}

__device__ inline void load_own_points(double* to, const Patch& patch, const Patches& patches) {
    for (u32 i = threadIdx.x; i < patch.n_rows; i += blockDim.x) {
#pragma unroll
        for (u32 axis = 0; axis < DIMENSION; ++axis) {
            to[axis * patch.n_rows + i] = patches.points[axis * patches.n_nodes + patch.row + i];
        }
    }
}

// Loads a point, from shared memory if it belongs to the patch.
__device__ inline Vector point_of(const double* own, const Patch& patch, const Patches& patches, u32 node) {
    const bool is_own = node - patch.row < patch.n_rows;
    const double* const from = is_own ? own + (node - patch.row) : patches.points + node;
    const u64 stride = is_own ? patch.n_rows : patches.n_nodes;
    return Vector{from[0], from[stride], DIMENSION == 3 ? from[(DIMENSION - 1) * stride] : 0.0};
}

// Loads columns and starts of a patch's rows, and clears their sums.
__device__ inline void load_rows(const Tile& tile, const Patch& patch, const Pattern& pattern) {
    for (u32 i = threadIdx.x; i < patch.n_entries; i += blockDim.x) {
        tile.columns[i] = pattern.columns[patch.entry + i];
        tile.values[i] = 0.0;
    }
    for (u32 i = threadIdx.x; i <= patch.n_rows; i += blockDim.x) {
        tile.starts[i] = (u32)(pattern.offsets[patch.row + i] - patch.entry);
        if (i < patch.n_rows) tile.rhs[i] = 0.0;
    }
}

// Position of a column among entries `begin` to `end` of a row that contains it; columns ascend.
__device__ inline u32 position(const u32* columns, u32 begin, u32 end, u32 wanted) {
    while (begin + 1 < end) {
        const u32 middle = (begin + end) / 2;
        if (columns[middle] <= wanted) begin = middle;
        else end = middle;
    }
    return begin;
}

__device__ inline void add_entry(
    const Tile& tile, const Patch& patch, const Pattern& pattern, const Rim& rim, u32 row, u32 column, double value) {
    const u32 own = row - patch.row;
    if (own < patch.n_rows) {
        const u32 at = position(tile.columns, tile.starts[own], tile.starts[own + 1], column);
        atomicAdd(&tile.values[at], value);
    } else {
        const Offset begin = pattern.offsets[row];
        const u32 length = (u32)(pattern.offsets[row + 1] - begin);
        atomicAdd(&rim.values[begin + position(pattern.columns + begin, 0, length, column)], value);
    }
}

__device__ inline void add_element(
    const Tile& tile, const Patch& patch, const Pattern& pattern, const Rim& rim, const u32 (&nodes)[CORNERS],
    const Element& element) {
#pragma unroll
    for (u32 a = 0; a < CORNERS; ++a) {
        const u32 i = nodes[a];
        add_entry(tile, patch, pattern, rim, i, i, element.diagonal[a]);
        if (SOURCE != NEVER) atomicAdd(i - patch.row < patch.n_rows ? &tile.rhs[i - patch.row] : &rim.rhs[i],
                                       element.load[a]);
#pragma unroll
        for (u32 b = a + 1; b < CORNERS; ++b) {
            const u32 j = nodes[b];
            add_entry(tile, patch, pattern, rim, i < j ? i : j, i < j ? j : i, element.edges[edge(a, b)]);
        }
    }
}

// Sums the elements of a patch; contributions to other rows go to `rim`, zero before. `bad` becomes the first cell that
// is degenerate or has coefficients out of range.
//
// At least one block per multiprocessor: else the compiler spills registers to fit more.
extern "C" __global__ void __launch_bounds__(THREADS, 1) patch_assemble(
    T* values, T* rhs, u32* bad, Rim rim, Pattern pattern, Patches patches, Form form) {
    FEMTILE_DYNAMIC_SHARED(double, shared);
    const Patch patch = patch_at(patches, pattern, blockIdx.x);
    const bool has_element = threadIdx.x < patch.n_elements;
    const u32 number = patch.element + threadIdx.x;
    load_own_points(shared, patch, patches);
    __syncthreads();
    u32 nodes[CORNERS] = {};
    Element element = {};
    if (has_element) {
        Vector p[CORNERS];
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            nodes[a] = patches.corners[a * patches.n_elements + number];
            p[a] = point_of(shared, patch, patches, nodes[a]);
        }
        element_matrix(element, form, READS_CELLS ? patches.cells[number] : 0, p);
        if (!element.is_sound) atomicMin(bad, patches.cells[number]);
    }
    // Rows replace the coordinates, which all elements have read by then.
    __syncthreads();
    const Tile tile = tile_of(shared, patch);
    load_rows(tile, patch, pattern);
    __syncthreads();
    if (has_element) add_element(tile, patch, pattern, rim, nodes, element);
    __syncthreads();
    for (u32 i = threadIdx.x; i < patch.n_entries; i += blockDim.x) values[patch.entry + i] = (T)tile.values[i];
    for (u32 i = threadIdx.x; i < patch.n_rows; i += blockDim.x) rhs[patch.row + i] = (T)tile.rhs[i];
}

// Adds contributions of other patches to rim rows, and clears them for the next launch.
extern "C" __global__ void patch_add_rim(T* values, T* rhs, Rim rim, Pattern pattern, const u32* rows, u64 n) {
    const u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, lane = thread % RIM_LANES;
    if (thread / RIM_LANES >= n) return;
    const u32 row = rows[thread / RIM_LANES];
    for (Offset i = pattern.offsets[row] + lane; i < pattern.offsets[row + 1]; i += RIM_LANES) {
        values[i] = (T)((double)values[i] + rim.values[i]);
        rim.values[i] = 0.0;
    }
    if (lane > 0) return;
    rhs[row] = (T)((double)rhs[row] + rim.rhs[row]);
    rim.rhs[row] = 0.0;
}
