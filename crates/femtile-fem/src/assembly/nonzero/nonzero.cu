// Assembly of linear elements by non-zeros, `[wong2015]` section 4, one block per patch of rows:
//
//   A_ij = sum_T (|T| (grad phi_i . sigma grad phi_j + mean(lambda phi_i phi_j)))   for i != j,
//   A_ii = sum_T |T| mean(lambda phi_i) - sum_{j != i} A_ij,   since the shape functions add up to 1,
//   b_i  = sum_T |T| mean(f phi_i).
//
// Elements of a patch are computed once each, their values kept in shared memory. Each entry then sums its own by
// ascending cell: the order depends only on the mesh, so the bits do not depend on patches, and an entry has the bits
// of its mirror image. Facet terms are added last, then constraints are eliminated.
#include "copy.cuh"
#include "element.cuh"
#include "reciprocal.cuh"

typedef FEMTILE_V V;

const u32 THREADS = FEMTILE_THREADS, BLOCKS = FEMTILE_BLOCKS;
// Lanes of a slice of rows; 0 if the entries of a row are consecutive.
const u32 LANES = FEMTILE_LANES;
const u32 NO_ENTRY = 0xffffu;
const u32 NOTHING = 0xffffffffu;

__host__ __device__ constexpr u32 values_of(u32 evaluated) {
    return evaluated == NEVER || evaluated == ONCE ? 0 : evaluated == BY_CELL ? 1 : CORNERS;
}

// Values per element for the reaction and for the load of its corners: one if all corners have the same. Constants need
// only the measure.
const u32 REACTIONS = values_of(LAMBDA), LOADS = values_of(SOURCE), MEASURES = LAMBDA == ONCE || SOURCE == ONCE;
// Sums of a row over its elements, in this order: reaction, load, a share of the measures.
const u32 ROW_SUMS = (REACTIONS > 0) + (LOADS > 0) + MEASURES;

// Lists of the patches; see `Lists` on the host.
struct Lists {
    const u32* heads;
    const u32* nodes;
    const u32* cells;
    const unsigned short* columns;
    const u32* sheets;
};

// Facet terms: for each row of a patch its index among rows with facets, and the entries of those.
struct Facets {
    const u32* of_rows;
    const u32* begin;
    const u32* entries;
    const double* values;
};

// A patch: where its sheet begins and ends, its size, and the starts of its nodes, rows, elements and entries.
struct Patch {
    u32 sheet, packs, n_nodes, n_rows, n_elements, n_entries, n_row_slices, n_slices, node, row, element, entry;
};

// Words of a head.
const u32 HEAD = 16;

__device__ inline Patch patch_of(const u32* head) {
    const Pack<u32> a = load_pack(head, 0), b = load_pack(head, 1), c = load_pack(head, 2), d = load_pack(head, 3);
    return Patch{a.value[0], a.value[ROW_SUMS > 0 ? 2 : 1], b.value[0], b.value[1], b.value[2], b.value[3],
                 c.value[0], c.value[1], c.value[2], c.value[3], d.value[0], d.value[1]};
}

// The stored values of an element.
struct ElementValues {
    double edges[EDGES];
    double reaction[REACTIONS > 0 ? REACTIONS : 1];
    double load[LOADS > 0 ? LOADS : 1];
    // Share of each corner in the integral of a constant.
    double share;
    bool is_sound;
};

// Means of the coefficients over an element, mass and load weighted with its shape functions.
__device__ inline void average(
    SigmaMean& sigma, ElementValues& out, const Form& form, u64 cell, const Vector (&p)[CORNERS],
    const double (&u)[CORNERS]) {
    const int tag = form.tags != 0 ? form.tags[cell] : 0;
    if (SIGMA_BY_CELL) see(sigma, out.is_sound, 1.0, sigma_at(form, cell, tag, 0.0, 0.0, 0.0));
    if (LAMBDA_BY_CELL) {
        const double lambda = lambda_at(form, cell, tag, 0.0, 0.0, 0.0);
        out.is_sound &= is_reaction(lambda);
        out.reaction[0] = lambda / CORNERS;
#pragma unroll
        for (u32 k = 0; k < EDGES; ++k) out.edges[k] = lambda * (1.0 / ((DIMENSION + 1.0) * (DIMENSION + 2.0)));
    }
    if (SOURCE == BY_CELL) {
        const double f = source_at(form, cell, tag, 0.0, 0.0, 0.0);
        out.is_sound &= is_finite(f);
        out.load[0] = f / CORNERS;
    }
    if (!VARIES_IN_CELLS) return;
#pragma unroll 1
    for (u32 q = 0; q < N_POINTS; ++q) {
        const double* const point = rule_point(form, q);
        const double weight = point[0];
        const Vector at = point_at(point, p);
        const double value = READS_UNKNOWN ? value_at(point, u) : 0.0;
        if (SIGMA == BY_POINT) {
            see(sigma, out.is_sound, weight, sigma_at(form, cell, tag, at.x, at.y, at.z, value));
        }
        // Of a linearization, the slope moves from the source to the reaction.
        double slope = 0.0;
        if (ANY_REACTION) slope = reaction_slope_at(form, cell, tag, at.x, at.y, at.z, value);
        if (LAMBDA == BY_POINT) {
            const double lambda = lambda_at(form, cell, tag, at.x, at.y, at.z, value) + slope;
            out.is_sound &= is_reaction(lambda);
#pragma unroll
            for (u32 a = 0; a < CORNERS; ++a) {
                const double share = weight * lambda * point[1 + a];
                out.reaction[a % (REACTIONS > 0 ? REACTIONS : 1)] += share;
#pragma unroll
                for (u32 b = a + 1; b < CORNERS; ++b) out.edges[edge(a, b)] += share * point[1 + b];
            }
        }
        if (SOURCE == BY_POINT) {
            const double f = source_at(form, cell, tag, at.x, at.y, at.z, value) + slope * value;
            out.is_sound &= is_finite(f);
#pragma unroll
            for (u32 a = 0; a < CORNERS; ++a) out.load[a % (LOADS > 0 ? LOADS : 1)] += weight * f * point[1 + a];
        }
    }
}

__device__ inline ElementValues element_values(
    const Form& form, u64 cell, const Vector (&p)[CORNERS], const double (&u)[CORNERS]) {
    Vector g[DIMENSION];
    const double volumes = area_vectors(g, p), factorial = DIMENSION == 3 ? 6.0 : 2.0;
    const double measure = volumes * (1.0 / factorial), scale = (1.0 / factorial) * reciprocal(volumes);
    ElementValues out = {};
    SigmaMean sigma = {};
    out.is_sound = measure >= SMALLEST && scale >= SMALLEST && scale <= LARGEST;
    average(sigma, out, form, cell, p, u);
    double stiffness[EDGES];
    stiffness_of_edges(stiffness, g, sigma, scale);
#pragma unroll
    for (u32 k = 0; k < EDGES; ++k) {
        out.edges[k] = LAMBDA == NEVER ? stiffness[k] : stiffness[k] + measure * out.edges[k];
    }
    out.share = measure * (1.0 / CORNERS);
#pragma unroll
    for (u32 a = 0; a < REACTIONS; ++a) out.reaction[a] *= measure;
#pragma unroll
    for (u32 a = 0; a < LOADS; ++a) out.load[a] *= measure;
    return out;
}

// The data of a patch. In shared memory: the edge values of each element, one after another, and a zero; then reactions,
// loads and shares, each corner followed by a zero; sums of rows; the front of its sheet; points, which entries of rows
// replace once elements are computed. In global memory, read once: corners, targets and codes.
struct Tile {
    double *edges, *reactions, *loads, *shares, *row_sums, *entries;
    const u32 *rows, *row_nodes, *slices, *targets, *codes;
    const double* points;
    const u64* corners;
};

__device__ inline u32 to_packs(u32 words) {
    return (words + 3) / 4 * 4;
}

// Words of the parts of a sheet before the points.
__device__ inline u32 front_of(const Patch& patch) {
    return 4 * patch.n_rows + to_packs(patch.n_rows) + to_packs(patch.n_row_slices + patch.n_slices + 1);
}

__device__ inline Tile tile_of(double* values, u32* front, double* entries, const u32* sheet, const Patch& patch) {
    const u32 n = patch.n_elements;
    Tile tile;
    tile.edges = values;
    tile.reactions = tile.edges + EDGES * n + 1;
    tile.loads = tile.reactions + REACTIONS * (n + 1);
    tile.shares = tile.loads + LOADS * (n + 1);
    tile.row_sums = tile.shares + MEASURES * (n + 1);
    tile.rows = front;
    tile.row_nodes = tile.rows + 4 * patch.n_rows;
    tile.slices = tile.row_nodes + to_packs(patch.n_rows);
    tile.entries = entries;
    tile.points = entries;
    const u32* const corners = sheet + front_of(patch) + to_packs(6 * patch.n_nodes);
    tile.corners = reinterpret_cast<const u64*>(corners);
    tile.targets = corners + to_packs(2 * n);
    tile.codes = tile.targets + WARP * patch.n_slices;
    return tile;
}

__device__ inline void copy_packs(void* to, const u32* from, u32 words) {
    for (u32 i = threadIdx.x; i < words / 4; i += THREADS) {
        copy_async(static_cast<Pack<u32>*>(to) + i, reinterpret_cast<const Pack<u32>*>(from) + i);
    }
}

// Starts copying front and points, and asks for the rest of the sheet.
__device__ inline void begin_copies(u32* front, double* points, const u32* sheet, const Patch& patch) {
    const u32 n_front = front_of(patch);
    copy_packs(front, sheet, n_front);
    copy_packs(points, sheet + n_front, to_packs(6 * patch.n_nodes));
    commit_copies();
    for (u32 i = threadIdx.x; i < patch.packs / 8; i += THREADS) prefetch_line(sheet + 32 * i);
}

// Loads a value that is read once, so that the matrix rather than the lists stays in the second cache: entries of slices
// fill a sector only when several patches are done.
template <typename E>
__device__ inline E load_once(const E* address) {
    return __ldcs(address);
}

// Whether the thread sees a constrained unknown of the patch.
__device__ inline bool sees_given_unknown(const Patch& patch, const u32* nodes, const Given& given) {
    bool meets = false;
    if (given.mask == 0) return meets;
    for (u32 i = threadIdx.x; i < patch.n_nodes; i += THREADS) meets |= is_given(given, nodes[patch.node + i]);
    return meets;
}

// `next` are the corners of the first element of the thread.
__device__ inline void work_out_elements(
    const Tile& tile, const Patch& patch, const Lists& lists, const Form& form, u32* bad, u64 next) {
    const u32 n = patch.n_elements;
    const u32* const cells = lists.cells;
    for (u32 e = threadIdx.x; e < n; e += THREADS) {
        const u64 corners = next;
        if (e + THREADS < n) next = load_once(tile.corners + e + THREADS);
        Vector p[CORNERS];
        double u[CORNERS];
#pragma unroll
        for (u32 a = 0; a < CORNERS; ++a) {
            const u32 place = (u32)(corners >> 16 * a & 0xffff);
            const double* const point = tile.points + place;
            p[a] = Vector{point[0], point[1], point[2]};
            u[a] = READS_UNKNOWN ? unknown_at(form, lists.nodes[patch.node + place / 3]) : 0.0;
        }
        const u64 cell = READS_CELLS ? cells[patch.element + e] : 0;
        const ElementValues values = element_values(form, cell, p, u);
#pragma unroll
        for (u32 k = 0; k < EDGES; ++k) tile.edges[k * n + e] = values.edges[k];
#pragma unroll
        for (u32 a = 0; a < REACTIONS; ++a) tile.reactions[a * (n + 1) + e] = values.reaction[a];
#pragma unroll
        for (u32 a = 0; a < LOADS; ++a) tile.loads[a * (n + 1) + e] = values.load[a];
        if (MEASURES) tile.shares[e] = values.share;
        if (!values.is_sound) atomicMin(bad, cells[patch.element + e]);
    }
    if (threadIdx.x == 0) {
        tile.edges[EDGES * n] = 0.0;
#pragma unroll
        for (u32 a = 0; a < REACTIONS; ++a) tile.reactions[a * (n + 1) + n] = 0.0;
#pragma unroll
        for (u32 a = 0; a < LOADS; ++a) tile.loads[a * (n + 1) + n] = 0.0;
        if (MEASURES) tile.shares[n] = 0.0;
    }
}

// Words of codes that are loaded before the slice before is summed.
const u32 AHEAD = 4;

// A slice of sums, from `begin` to `end` among the words of a lane; the target of this lane, its row or its entries.
struct Slice {
    u32 begin, end, target, codes[AHEAD];
    bool is_of_rows;
};

// Slices of rows are first, as they take longest.
__device__ inline u32 row_slices(const Patch& patch) {
    return ROW_SUMS > 0 ? patch.n_row_slices : 0;
}

// `codes` of a tile are those of this lane.
__device__ inline Slice slice_at(const Tile& tile, const Patch& patch, u32 i) {
    const u32 lane = threadIdx.x % WARP, n_rows = row_slices(patch);
    Slice slice = {};
    if (i >= n_rows + patch.n_slices) return slice;
    slice.is_of_rows = i < n_rows;
    const u32 s = slice.is_of_rows ? patch.n_slices + i : i - n_rows;
    slice.begin = tile.slices[s];
    slice.end = tile.slices[s + 1];
    slice.target = slice.is_of_rows ? WARP * i + lane : load_once(tile.targets + WARP * s + lane);
#pragma unroll
    for (u32 j = 0; j < AHEAD; ++j) {
        if (slice.begin + j < slice.end) slice.codes[j] = load_once(tile.codes + WARP * (slice.begin + j));
    }
    return slice;
}

// Calls `add` for each code of the slice, two of which are in a word.
template <typename Add>
__device__ inline void for_codes(const Tile& tile, const Slice& slice, const Add& add) {
#pragma unroll
    for (u32 j = 0; j < AHEAD; ++j) {
        if (slice.begin + j < slice.end) {
            add(slice.codes[j] & 0xffff);
            add(slice.codes[j] >> 16);
        }
    }
#pragma unroll 4
    for (u32 j = slice.begin + AHEAD; j < slice.end; ++j) {
        const u32 codes = load_once(tile.codes + WARP * j);
        add(codes & 0xffff);
        add(codes >> 16);
    }
}

// Sums an off-diagonal entry: one lane per edge; a code is the place of an element value.
__device__ inline void gather_entry(const Tile& tile, const Slice& slice) {
    double sum = 0.0;
    for_codes(tile, slice, [&](u32 code) { sum += tile.edges[code]; });
    const u32 here = slice.target & 0xffff, mirrored = slice.target >> 16;
    if (here != NO_ENTRY) tile.entries[here] = sum;
    if (mirrored != NO_ENTRY) tile.entries[mirrored] = sum;
}

// Sums the terms of a row over the cells of its node: a code is four times an element plus the corner.
__device__ inline void gather_row(const Tile& tile, const Patch& patch, const Slice& slice) {
    double reaction = 0.0, load = 0.0, share = 0.0;
    for_codes(tile, slice, [&](u32 code) {
        const u32 e = code >> 2, at = (code & 3) * (patch.n_elements + 1) + e;
        if (REACTIONS > 0) reaction += tile.reactions[LAMBDA == BY_CELL ? e : at];
        if (LOADS > 0) load += tile.loads[SOURCE == BY_CELL ? e : at];
        if (MEASURES) share += tile.shares[e];
    });
    const u32 row = slice.target;
    if (row >= patch.n_rows) return;
    double* const sums = tile.row_sums + row;
    if (REACTIONS > 0) sums[0] = reaction;
    if (LOADS > 0) sums[(REACTIONS > 0) * patch.n_rows] = load;
    if (MEASURES) sums[(ROW_SUMS - 1) * patch.n_rows] = share;
}

struct RowSums {
    double reaction, load;
};

__device__ inline RowSums sums_of_row(const Tile& tile, const Patch& patch, const Form& form, u32 row) {
    const double* const sums = tile.row_sums + row;
    const double share = MEASURES ? sums[(ROW_SUMS - 1) * patch.n_rows] : 0.0;
    RowSums found = {0.0, 0.0};
    if (REACTIONS > 0) found.reaction = sums[0];
    if (LAMBDA == ONCE) found.reaction = share * lambda_at(form, 0, 0, 0.0, 0.0, 0.0);
    if (LOADS > 0) found.load = sums[(REACTIONS > 0) * patch.n_rows];
    if (SOURCE == ONCE) found.load = share * source_at(form, 0, 0, 0.0, 0.0, 0.0);
    return found;
}

// Sums over elements, one warp per slice of 32; `next` is the first of the warp.
__device__ inline void gather(const Tile& tile, const Patch& patch, Slice next) {
    const u32 n_slices = row_slices(patch) + patch.n_slices;
    for (u32 i = threadIdx.x / WARP; i < n_slices; i += THREADS / WARP) {
        const Slice slice = next;
        next = slice_at(tile, patch, i + THREADS / WARP);
        if (slice.is_of_rows) gather_row(tile, patch, slice);
        else gather_entry(tile, slice);
    }
}

// A row: start and number of its entries in the patch, its diagonal entry, its first lane and the logarithm of its
// lanes, and the start in the matrix of the row or its slice.
struct Row {
    u32 begin, length, diagonal, lane, fold;
    u64 start;
};

__device__ inline Row row_at(const u32* rows, u32 number) {
    const Pack<u32> pack = load_pack(rows, number);
    return Row{pack.value[0] & 0xffff, pack.value[0] >> 16, pack.value[1] & 0xffff, pack.value[1] >> 16 & 0xff,
               pack.value[1] >> 24, pack.value[2] | (u64)pack.value[3] << 32};
}

// The diagonal from the sum of the others, then facet terms; returns the right side of the row.
__device__ inline double finish_row(
    double* entries, const Row& row, const RowSums& sums, const Facets& facets, u64 number) {
    double others = 0.0;
    for (u32 k = 0; k < row.length; ++k) {
        if (k != row.diagonal) others += entries[k];
    }
    entries[row.diagonal] = sums.reaction - others;
    double right = sums.load;
    const u32 of_row = facets.of_rows != 0 ? facets.of_rows[number] : NOTHING;
    if (of_row == NOTHING) return right;
    for (u32 i = facets.begin[of_row]; i < facets.begin[of_row + 1]; ++i) {
        const u32 entry = facets.entries[i];
        if (entry == RIGHT_SIDE) right += facets.values[i];
        else entries[entry] += facets.values[i];
    }
    return right;
}

// Eliminates constraints from a row: a unit row, or columns moved to the right side, which it returns.
__device__ inline double eliminate(
    double* entries, const Row& row, const unsigned short* columns, const u32* nodes, u32 node, const Given& given,
    double right) {
    const bool is_fixed = is_given(given, node);
    for (u32 k = 0; k < row.length; ++k) {
        const u32 column = nodes[columns[k]];
        if (is_fixed) {
            entries[k] = k == row.diagonal ? 1.0 : 0.0;
        } else if (is_given(given, column)) {
            right -= entries[k] * given_value(given, column);
            entries[k] = 0.0;
        }
    }
    return is_fixed ? 0.0 : right;
}

// Place of entry k of a row among the values of the matrix.
__device__ inline u64 place(const Row& row, u32 k) {
    if (LANES == 0) return row.start + k;
    const u32 lane = row.lane + (k & ((1u << row.fold) - 1));
    const u32 stored = LANES > WARP ? lane % WARP * (LANES / WARP) + lane / WARP : lane;
    return row.start + (u64)(k >> row.fold) * LANES + stored;
}

// Half a warp per row if its entries are consecutive; else neighbouring lanes have neighbouring rows, and warps share
// the entries of a row.
__device__ inline void write_entries(V* values, const Tile& tile, const Patch& patch) {
    const u32 n_lanes = LANES == 0 ? WARP / 2 : THREADS / ((patch.n_rows + WARP - 1) / WARP * WARP);
    const u32 n_at_once = THREADS / n_lanes;
    const u32 own = LANES == 0 ? threadIdx.x / n_lanes : threadIdx.x % n_at_once;
    const u32 lane = LANES == 0 ? threadIdx.x % n_lanes : threadIdx.x / n_at_once;
    for (u32 number = own; number < patch.n_rows; number += n_at_once) {
        const Row row = row_at(tile.rows, number);
        for (u32 k = lane; k < row.length; k += n_lanes) values[place(row, k)] = (V)tile.entries[row.begin + k];
    }
}

// Sums and writes all rows of a patch.
__device__ inline void assemble_patch(
    V* values, T* rhs, double* unrounded, u32* bad, Tile tile, const Patch& patch, const Lists& lists,
    const Facets& facets, const Given& given, const Form& form) {
    const u64 corners = threadIdx.x < patch.n_elements ? load_once(tile.corners + threadIdx.x) : 0;
    wait_for_copies<0>();
    __syncthreads();
    const bool meets = sees_given_unknown(patch, lists.nodes, given);
    work_out_elements(tile, patch, lists, form, bad, corners);
    tile.codes += threadIdx.x % WARP;
    const Slice slice = slice_at(tile, patch, threadIdx.x / WARP);
    const bool sees_given = __syncthreads_or(meets);
    gather(tile, patch, slice);
    __syncthreads();
    for (u32 i = threadIdx.x; i < patch.n_rows; i += THREADS) {
        const RowSums sums = sums_of_row(tile, patch, form, i);
        const Row row = row_at(tile.rows, i);
        const u32 node = tile.row_nodes[i];
        double* const entries = tile.entries + row.begin;
        double right = finish_row(entries, row, sums, facets, patch.row + i);
        if (sees_given) {
            const unsigned short* const columns = lists.columns + patch.entry + row.begin;
            right = eliminate(entries, row, columns, lists.nodes + patch.node, node, given, right);
        }
        rhs[node] = (T)right;
        if (unrounded != 0) unrounded[node] = right;
    }
    __syncthreads();
    write_entries(values, tile, patch);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) assembly_nonzeros(
    V* values, T* rhs, double* unrounded, u32* bad, Lists lists, Facets facets, Given given, Form form,
    u32 values_room, u32 front_room) {
    FEMTILE_DYNAMIC_SHARED(double, shared);
    u32* const front = reinterpret_cast<u32*>(shared + values_room);
    double* const entries = reinterpret_cast<double*>(front + front_room);
    const Patch patch = patch_of(lists.heads + HEAD * blockIdx.x);
    const u32* const sheet = lists.sheets + 4ull * patch.sheet;
    begin_copies(front, entries, sheet, patch);
    const Tile tile = tile_of(shared, front, entries, sheet, patch);
    assemble_patch(values, rhs, unrounded, bad, tile, patch, lists, facets, given, form);
}
