// Hybrid of elimination and parallel cyclic reduction for lines of contiguous entries: [laszlo2016], Alg. 10.
//
// A block of threads solves SYSTEMS systems; CHUNKS threads share a system, and each eliminates ROWS rows in
// registers. Arrays pass through shared memory in packs of 16 bytes, an odd number of them a chunk, so that lanes meet
// no bank twice. Every value is read and written once: 5 N values a system.
#include "femtile.cuh"
#include "bands.cuh"
#include "copy.cuh"

const u32 ROWS = FEMTILE_ROWS, CHUNKS = FEMTILE_CHUNKS, SYSTEMS = FEMTILE_SYSTEMS, THREADS = CHUNKS * SYSTEMS;
#include "exchange.cuh"
#include "lanes.cuh"
const u32 WIDTH = Pack<T>::N, PACKS = ROWS / WIDTH, CHUNK = PACKS | 1;
const u32 TILE = SYSTEMS * CHUNKS * CHUNK;
// Threads that copy a line: no more than it has packs.
const u32 COPIERS = CHUNKS * PACKS >= 32 ? 32 : CHUNKS * PACKS >= 16 ? 16 : 8;
static_assert(ROWS % WIDTH == 0 && THREADS % WARP == 0, "rows in whole packs, threads in whole warps");

// Where a pack of a system lies in its tile.
__device__ inline u32 place(u32 system, u32 pack) {
    return system * (CHUNKS * CHUNK) + pack + (CHUNK == PACKS ? 0 : pack / PACKS);
}

// Where a number of a system lies in its tile.
__device__ inline u32 place_of_row(u32 system, u32 row) { return place(system, row / WIDTH) * WIDTH + row % WIDTH; }

// The lines that this thread copies: those from the k-th of the block on, COPIERS threads a line.
struct Copier {
    u32 k, lane, end;

    __device__ inline Copier(u32 first, u64 n_lines)
        : k(threadIdx.x / COPIERS), lane(threadIdx.x % COPIERS), end(lesser(SYSTEMS, (u32)n_lines - first)) {}
};

__device__ inline void copy_tiles(Pack<T>* tile, const T* d, const T* a, const T* b, const T* c, const Lines& lines, u32 first) {
    const u32 length = (u32)lines.length;
    for (Copier own(first, lines.n_lines); own.k < own.end; own.k += THREADS / COPIERS) {
        const T* const from_d = d + lines.start(first + own.k);
        const u64 bands = FEMTILE_RULE ? 0 : lines.band_start(first + own.k);
#if FEMTILE_PACKS
        for (u32 i = own.lane; i < length / WIDTH; i += COPIERS) {
            Pack<T>* const to = tile + place(own.k, i);
            copy_async(to, (const Pack<T>*)from_d + i);
#if !FEMTILE_RULE
            copy_async(to + TILE, (const Pack<T>*)(a + bands) + i);
            copy_async(to + 2 * TILE, (const Pack<T>*)(b + bands) + i);
            copy_async(to + 3 * TILE, (const Pack<T>*)(c + bands) + i);
#endif
        }
#else
        for (u32 i = own.lane; i < length; i += COPIERS) {
            T* const to = (T*)tile + place_of_row(own.k, i);
            copy_async(to, from_d + i);
#if !FEMTILE_RULE
            const u64 from = bands + i * lines.band_stride;
            copy_async(to + TILE * WIDTH, a + from);
            copy_async(to + 2 * TILE * WIDTH, b + from);
            copy_async(to + 3 * TILE * WIDTH, c + from);
#endif
        }
#endif
    }
    commit_copies();
}

__device__ inline void store_tile(T* u, const Pack<T>* tile, const Lines& lines, u32 first) {
    const u32 length = (u32)lines.length;
    for (Copier own(first, lines.n_lines); own.k < own.end; own.k += THREADS / COPIERS) {
        T* const to = u + lines.start(first + own.k);
#if FEMTILE_PACKS
        for (u32 i = own.lane; i < length / WIDTH; i += COPIERS) store_pack(to, i, tile[place(own.k, i)]);
#else
        for (u32 i = own.lane; i < length; i += COPIERS) to[i] = ((const T*)tile)[place_of_row(own.k, i)];
#endif
    }
}

// Puts what stands beyond the end of a system into the rows of a chunk from `row` on, so that all chunks are alike.
__device__ inline void fill_beyond_end(T* own, u32 row) {
    const Equation of = beyond_end();
    for (; row < ROWS; ++row) {
        own[row] = of.value;
#if !FEMTILE_RULE
        own[row + TILE * WIDTH] = of.lower;
        own[row + 2 * TILE * WIDTH] = of.diagonal;
        own[row + 3 * TILE * WIDTH] = of.upper;
#endif
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, FEMTILE_BLOCKS) tridiagonal_hybrid_rows(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands) {
    FEMTILE_DYNAMIC_SHARED(Pack<T>, tile);
    const u32 first = blockIdx.x * SYSTEMS, length = (u32)lines.length;
    const u32 chunk = threadIdx.x % CHUNKS, system = threadIdx.x / CHUNKS, row_0 = chunk * ROWS;
    const bool is_system = first + system < lines.n_lines;
    Pack<T>* const own = tile + (system * CHUNKS + chunk) * CHUNK;
    copy_tiles(tile, d, a, b, c, lines, first);
    const u32 n_rows = is_system && row_0 < length ? lesser(length - row_0, ROWS) : 0;
    if (n_rows < ROWS) fill_beyond_end((T*)own, n_rows);
    wait_for_copies<0>();
    __syncthreads();

    Chunk<ROWS> of;
    of.begin();
#if !FEMTILE_RULE && !FEMTILE_PERIODIC
    if (chunk == 0) ((T*)(own + TILE))[0] = (T)0;
    if (n_rows > 0 && row_0 + n_rows == length) ((T*)(own + 3 * TILE))[n_rows - 1] = (T)0;
#endif
#pragma unroll
    for (u32 pack = 0; pack < PACKS; ++pack) {
        const Pack<T> of_d = own[pack];
#if !FEMTILE_RULE
        const Pack<T> of_a = own[pack + TILE], of_b = own[pack + 2 * TILE], of_c = own[pack + 3 * TILE];
#endif
#pragma unroll
        for (u32 j = 0; j < WIDTH; ++j) {
            const u32 i = pack * WIDTH + j;
#if FEMTILE_RULE
            Equation row = beyond_end();
            if (i < n_rows) bands.row(first + system, row_0 + i, row.lower, row.diagonal, row.upper);
            if (!PERIODIC && row_0 + i == 0) row.lower = (T)0;
            if (!PERIODIC && row_0 + i + 1 == length) row.upper = (T)0;
            row.value = of_d.value[j];
#else
            const Equation row = {of_a.value[j], of_b.value[j], of_c.value[j], of_d.value[j]};
#endif
            of.eliminate(i, row_0 + i, length, row);
        }
    }
    const Reduced last = of.last(row_0), head = of.first(row_0, length);
    const u32 n_chunks = (length - 1) / ROWS + 1;
#if FEMTILE_CHUNKS > 32
    FEMTILE_SHARED T exchange[EXCHANGE];
    FEMTILE_SHARED u32 bad_rows[SYSTEMS];
    const Ends ends = exchange_chunks(exchange, bad_rows, last, head, of.wrap, system, chunk, n_chunks, of.bad, ROWS);
#else
    const Ends ends = solve_chunks<CHUNKS>(last, head, of.wrap, chunk, n_chunks, of.bad, row_0 + ROWS - 1);
#endif
    T next = (T)0;
#pragma unroll
    for (u32 p = 0; p < PACKS; ++p) {
        const u32 pack = PACKS - 1 - p;
        Pack<T> of_u;
#pragma unroll
        for (u32 j = 0; j < WIDTH; ++j) {
            const u32 i = pack * WIDTH + WIDTH - 1 - j;
            next = of.substitute(i, row_0 + i, length, next, ends.before, ends.s);
            of_u.value[WIDTH - 1 - j] = next;
        }
        own[pack] = of_u;
    }
    if (ends.bad != SOUND && chunk == 0 && is_system) note_failure(status, lines, first + system, ends.bad);
    __syncthreads();
    store_tile(u, tile, lines, first);
}
