// Transfers between elements of two degrees on the same quadrilaterals or hexahedra: values of the coarser shape functions
// at the finer nodes, and the transpose.
//
// A team of threads handles a cell, a thread handles a line in registers. A finer unknown belongs to the first cell
// that has it, so no two cells write the same. Contributions to a coarser unknown are stored per cell, and degree_sum
// adds them in the order of cells.
#include "femtile.cuh"
#include "columns.cuh"
#include "contract.cuh"
#include "tables.cuh"

// Threads per team and teams per block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Nodes along an axis of a finer and a coarser cell, and along the second of three axes.
const u32 DIMENSION = FEMTILE_DIMENSION, FINE = FEMTILE_FINE + 1, COARSE = FEMTILE_COARSE + 1;
const u32 FINE_SECOND = DIMENSION == 3 ? FINE : 1, COARSE_SECOND = DIMENSION == 3 ? COARSE : 1;
// Nodes of a layer across the last axis, and of a coarser cell.
const u32 FINE_LAYER = FINE * FINE_SECOND, COARSE_LAYER = COARSE * COARSE_SECOND, COARSE_NODES = COARSE * COARSE_LAYER;
// Entry (x, y, z) of a tensor in shared memory: x + ROW y + LAYER z, with coarser nodes along the last axis; in two dimensions
// LAYER = ROW. Rows are odd, so that threads with a row each have few bank conflicts.
const u32 ROW = FINE | 1, LAYER = FINE_SECOND * ROW, TENSOR = COARSE * LAYER;
// Words of a cell: first unknowns of its entities and the start of its list.
const u32 LIST = DIMENSION == 3 ? 27 : 9, CELL_WORDS = LIST + 1, OF_LAYER = LIST / 3;

struct Raise {
    static const u32 ROWS = FINE, COLUMNS = COARSE;
    static __device__ inline T at(u32 fine, u32 coarse) { return VALUES[fine * COARSE + coarse]; }
};
typedef Transposed<Raise> Lower;

// Words of the finer cells, with NOTHING for constrained entities and those of an earlier cell; all unknowns of
// irregular cells; unknowns of the coarser cells, with NOTHING for constrained ones.
struct Cells {
    const u32* words;
    const u32* lists;
    const u32* coarse;
    u64 n;
};

// The part of a finer cell along a column of the last axis.
struct FineColumn : EntityColumn<FEMTILE_FINE> {
    u32 firsts[3];
    const u32* list;

    __device__ inline FineColumn(const Cells& cells, u32 cell, u32 x, u32 y) : EntityColumn<FEMTILE_FINE>(x, y) {
        const u32* const words = cells.words + (u64)cell * CELL_WORDS;
#pragma unroll
        for (u32 d = 0; d < 3; ++d) firsts[d] = __ldg(words + entity + OF_LAYER * d);
        const u32 begin = __ldg(words + LIST);
        list = begin == NOTHING ? 0 : cells.lists + begin + node;
    }

    // The unknown at node k, or NOTHING.
    __device__ inline u32 unknown(u32 k) const {
        const u32 first = firsts[digit(k)];
        if (first == NOTHING) return NOTHING;
        return list ? __ldg(list + FINE_LAYER * k) : first + place_of(k);
    }
};

// A thread in a cell, and its team's tensor in shared memory.
struct Place {
    T* values;
    u32 cell, own;
    bool is_active;

    __device__ inline Place(T* shared, const Cells& cells) {
        const u32 team = threadIdx.x / TEAM, number = blockIdx.x * TEAMS + team;
        own = threadIdx.x % TEAM;
        is_active = team < TEAMS && number < cells.n;
        cell = is_active ? number : 0;
        values = shared + (is_active ? team : 0) * TENSOR;
    }
};

// A line of a team, of n times m nodes along the other axes; m is 1 in two dimensions.
struct Line {
    u32 p, q;
    bool is_there;

    __device__ inline Line(const Place& place, u32 n, u32 m) {
        p = place.own % n;
        q = place.own / n;
        is_there = place.is_active && q < m;
    }
};

// x += I e.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) degree_prolong(T* x, const T* e, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Place place(shared, cells);
    T* const values = place.values;

    const Line loaded(place, COARSE, COARSE_SECOND);
    if (loaded.is_there) {
        const u32* const unknowns = cells.coarse + (u64)place.cell * COARSE_NODES + loaded.p + loaded.q * COARSE;
        T coarse[COARSE];
#pragma unroll
        for (u32 k = 0; k < COARSE; ++k) {
            const u32 unknown = __ldg(unknowns + k * COARSE_LAYER);
            coarse[k] = unknown == NOTHING ? (T)0 : __ldg(e + unknown);
        }
        store_line(values + loaded.p + loaded.q * ROW, coarse, LAYER);
    }
    __syncthreads();
    if (loaded.is_there) {
        T* const line = values + loaded.p * ROW + loaded.q * LAYER;
        contract_line<Raise>(line, line, 1);
    }
    __syncthreads();
#if FEMTILE_DIMENSION == 3
    const Line along_y(place, FINE, COARSE);
    if (along_y.is_there) {
        T* const line = values + along_y.p + along_y.q * LAYER;
        contract_line<Raise>(line, line, ROW);
    }
    __syncthreads();
#endif
    const Line last(place, FINE, FINE_SECOND);
    if (last.is_there) {
        const FineColumn column(cells, place.cell, last.p, last.q);
        T coarse[COARSE], fine[FINE], before[FINE];
        // All loads are issued before the first store.
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            before[k] = unknown == NOTHING ? (T)0 : x[unknown];
        }
        load_line(coarse, values + last.p + last.q * ROW, LAYER);
        contract<Raise>(fine, coarse);
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            if (unknown != NOTHING) x[unknown] = before[k] + fine[k];
        }
    }
}

// Contributions of each cell to I^T r, the first axis fastest.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) degree_restrict(T* parts, const T* r, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Place place(shared, cells);
    T* const values = place.values;
    T coarse[COARSE], fine[FINE];

    const Line last(place, FINE, FINE_SECOND);
    if (last.is_there) {
        const FineColumn column(cells, place.cell, last.p, last.q);
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            fine[k] = unknown == NOTHING ? (T)0 : __ldg(r + unknown);
        }
        contract<Lower>(coarse, fine);
        store_line(values + last.p + last.q * ROW, coarse, LAYER);
    }
    __syncthreads();
#if FEMTILE_DIMENSION == 3
    const Line along_y(place, FINE, COARSE);
    if (along_y.is_there) {
        T* const line = values + along_y.p + along_y.q * LAYER;
        contract_line<Lower>(line, line, ROW);
    }
    __syncthreads();
#endif
    const Line along_x(place, COARSE, COARSE_SECOND);
    if (along_x.is_there) {
        load_line(fine, values + along_x.p * ROW + along_x.q * LAYER, 1);
        contract<Lower>(coarse, fine);
        T* const to = parts + (u64)place.cell * COARSE_NODES;
        store_line(to + (along_x.p + along_x.q * COARSE) * COARSE, coarse, 1);
    }
}

// Sums the contributions to each unknown, at places[begins[i]] to places[begins[i + 1]]. One thread per unknown.
extern "C" __global__ void degree_sum(T* b, const T* parts, const u32* begins, const u32* places, u64 n) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T sum = 0;
    for (u32 k = begins[i]; k < begins[i + 1]; ++k) sum += parts[places[k]];
    b[i] = sum;
}
