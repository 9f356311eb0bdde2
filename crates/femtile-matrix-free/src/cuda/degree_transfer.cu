// Between elements of two degrees on the same hexahedra: values of the coarser shapes at the finer nodes, and the
// transpose of it.
//
// A team of threads takes a cell, a thread a line in registers. A finer unknown belongs to the first cell that has it, so
// no two cells write the same; what cells make of a coarser one is put aside, and degree_sum adds it in the order of cells.
#include "femtile.cuh"
#include "columns.cuh"
#include "contract.cuh"
#include "tables.cuh"

// Threads of a team and teams of a block.
const u32 TEAM = FEMTILE_TEAM, TEAMS = FEMTILE_TEAMS;
// Nodes along an axis of a cell, and of a coarser cell in all.
const u32 FINE = FEMTILE_FINE + 1, COARSE = FEMTILE_COARSE + 1, COARSE_NODES = COARSE * COARSE * COARSE;
// Where entry (x, y, z) of a tensor lies in shared memory: x + ROW y + LAYER z, with coarser nodes along z. Rows are odd, so
// that threads with a row each meet in few banks.
const u32 ROW = FINE | 1, LAYER = FINE * ROW, TENSOR = COARSE * LAYER;
// Words of a cell: first unknowns of its 27 entities and where its list begins.
const u32 CELL_WORDS = 28, LIST = 27;

struct Raise {
    static const u32 ROWS = FINE, COLUMNS = COARSE;
    static __device__ inline T at(u32 fine, u32 coarse) { return VALUES[fine * COARSE + coarse]; }
};
typedef Transposed<Raise> Lower;

// Words of the finer cells, with NOTHING for entities that are not a cell's own or constrained; all unknowns of cells that
// see some of them otherwise than the first that has them; unknowns of the coarser cells, with NOTHING for constrained ones.
struct Cells {
    const u32* words;
    const u32* lists;
    const u32* coarse;
    u64 n;
};

// The part of a finer cell that a column along the third axis sees.
struct FineColumn : EntityColumn<FEMTILE_FINE> {
    u32 firsts[3];
    const u32* list;

    __device__ inline FineColumn(const Cells& cells, u32 cell, u32 x, u32 y) : EntityColumn<FEMTILE_FINE>(x, y) {
        const u32* const words = cells.words + (u64)cell * CELL_WORDS;
#pragma unroll
        for (u32 d = 0; d < 3; ++d) firsts[d] = __ldg(words + entity + 9 * d);
        const u32 begin = __ldg(words + LIST);
        list = begin == NOTHING ? 0 : cells.lists + begin + node;
    }

    // The unknown at node k, or NOTHING.
    __device__ inline u32 unknown(u32 k) const {
        const u32 first = firsts[digit(k)];
        if (first == NOTHING) return NOTHING;
        return list ? __ldg(list + FINE * FINE * k) : first + place_of(k);
    }
};

// A thread in a cell: its team's tensor in shared memory.
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

// A line of a team, of n times m nodes along the other axes.
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

    const Line loaded(place, COARSE, COARSE);
    if (loaded.is_there) {
        const u32* const unknowns = cells.coarse + (u64)place.cell * COARSE_NODES + loaded.p + loaded.q * COARSE;
        T coarse[COARSE];
#pragma unroll
        for (u32 k = 0; k < COARSE; ++k) {
            const u32 unknown = __ldg(unknowns + k * COARSE * COARSE);
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
    const Line along_y(place, FINE, COARSE);
    if (along_y.is_there) {
        T* const line = values + along_y.p + along_y.q * LAYER;
        contract_line<Raise>(line, line, ROW);
    }
    __syncthreads();
    const Line along_z(place, FINE, FINE);
    if (along_z.is_there) {
        const FineColumn column(cells, place.cell, along_z.p, along_z.q);
        T coarse[COARSE], fine[FINE], before[FINE];
        // All are asked for before the first is written.
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            before[k] = unknown == NOTHING ? (T)0 : x[unknown];
        }
        load_line(coarse, values + along_z.p + along_z.q * ROW, LAYER);
        contract<Raise>(fine, coarse);
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            if (unknown != NOTHING) x[unknown] = before[k] + fine[k];
        }
    }
}

// What each cell has of I^T r, with the first axis fastest.
extern "C" __global__ void __launch_bounds__(FEMTILE_THREADS) degree_restrict(T* parts, const T* r, Cells cells) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Place place(shared, cells);
    T* const values = place.values;
    T coarse[COARSE], fine[FINE];

    const Line along_z(place, FINE, FINE);
    if (along_z.is_there) {
        const FineColumn column(cells, place.cell, along_z.p, along_z.q);
#pragma unroll
        for (u32 k = 0; k < FINE; ++k) {
            const u32 unknown = column.unknown(k);
            fine[k] = unknown == NOTHING ? (T)0 : __ldg(r + unknown);
        }
        contract<Lower>(coarse, fine);
        store_line(values + along_z.p + along_z.q * ROW, coarse, LAYER);
    }
    __syncthreads();
    const Line along_y(place, FINE, COARSE);
    if (along_y.is_there) {
        T* const line = values + along_y.p + along_y.q * LAYER;
        contract_line<Lower>(line, line, ROW);
    }
    __syncthreads();
    const Line along_x(place, COARSE, COARSE);
    if (along_x.is_there) {
        load_line(fine, values + along_x.p * ROW + along_x.q * LAYER, 1);
        contract<Lower>(coarse, fine);
        T* const to = parts + (u64)place.cell * COARSE_NODES;
        store_line(to + (along_x.p + along_x.q * COARSE) * COARSE, coarse, 1);
    }
}

// b = the sum of what cells have of an unknown, at places[begins[i]] to places[begins[i + 1]]. A thread takes an unknown.
extern "C" __global__ void degree_sum(T* b, const T* parts, const u32* begins, const u32* places, u64 n) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T sum = 0;
    for (u32 k = begins[i]; k < begins[i + 1]; ++k) sum += parts[places[k]];
    b[i] = sum;
}
