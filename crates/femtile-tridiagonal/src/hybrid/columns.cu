// Hybrid of elimination and parallel cyclic reduction for lines of any stride: [laszlo2016], Alg. 11.
//
// A block of threads solves SYSTEMS systems that are neighbours in memory; CHUNKS threads share a system, and each
// eliminates ROWS rows in registers. Neighbouring threads have neighbouring systems, so a warp reads whole segments
// of memory. Equations come through a queue in shared memory, DEPTH rows of each chunk ahead of the elimination.
// Every value is read and written once: 5 N values a system.
#include "femtile.cuh"
#include "bands.cuh"
#include "copy.cuh"

const u32 ROWS = FEMTILE_ROWS, CHUNKS = FEMTILE_CHUNKS, SYSTEMS = FEMTILE_SYSTEMS, DEPTH = FEMTILE_DEPTH;
const u32 THREADS = CHUNKS * SYSTEMS;
#include "exchange.cuh"
// The unit of copies: a number, or a pack where systems begin at multiples of one.
#if FEMTILE_PACKS
typedef Pack<T> Piece;
const u32 WIDTH = Pack<T>::N;
#else
typedef T Piece;
const u32 WIDTH = 1;
#endif
static_assert(SYSTEMS % WIDTH == 0 && THREADS % WARP == 0, "systems in whole packs, threads in whole warps");
// Arrays in the queue: d, then a, b and c.
const u32 ARRAYS = FEMTILE_RULE ? 1 : 4;
// Pieces of one array that a warp takes for a row of each of its chunks, and copies that a lane makes for all arrays.
const u32 PIECES = WARP / WIDTH, COPIES = ARRAYS * PIECES < WARP ? 1 : ARRAYS * PIECES / WARP;
const u32 STAGE = ARRAYS * WARP;

// The copy of a lane for every row: source, stride to the next row, and place in a stage.
struct Copier {
    const T* from;
    u64 stride;
    u32 to, rows;

    // Piece `index` of a stage; `warp_0` is the first thread of the warp.
    __device__ inline void begin(u32 index, u32 warp_0, const T* const* arrays, const Lines& lines, u32 first) {
        const u32 array = index / PIECES, thread = warp_0 + index % PIECES * WIDTH;
        const u32 system = thread % SYSTEMS, row_0 = thread / SYSTEMS * ROWS, length = (u32)lines.length;
        to = array * WARP + index % PIECES * WIDTH;
        rows = array < ARRAYS && first + system < lines.n_lines && row_0 < length ? lesser(length - row_0, ROWS) : 0;
        stride = array == 0 ? lines.stride : lines.band_stride;
        from = arrays[0];
        if (rows == 0) return;
        const u64 start = array == 0 ? lines.start(first + system) : lines.band_start(first + system);
        from = (array == 0 ? arrays[0] : array == 1 ? arrays[1] : array == 2 ? arrays[2] : arrays[3]) + start + row_0 * stride;
    }

    __device__ inline void copy(T* stage, u32 i) {
        if (i < rows) copy_async((Piece*)(stage + to), (const Piece*)(from + i * stride));
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, FEMTILE_BLOCKS) tridiagonal_hybrid_columns(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands) {
    FEMTILE_DYNAMIC_SHARED(T, memory);
    const u32 first = blockIdx.x * SYSTEMS, length = (u32)lines.length, lane = threadIdx.x % WARP;
    const u32 system = threadIdx.x % SYSTEMS, chunk = threadIdx.x / SYSTEMS, row_0 = chunk * ROWS;
    const bool is_system = first + system < lines.n_lines;
    T* const queue = memory + threadIdx.x / WARP * (DEPTH * STAGE);
    Copier copiers[COPIES];
    {
        const T* const arrays[4] = {d, a, b, c};
#pragma unroll
        for (u32 k = 0; k < COPIES; ++k) copiers[k].begin(lane + k * WARP, threadIdx.x - lane, arrays, lines, first);
    }
#pragma unroll
    for (u32 i = 0; i < DEPTH; ++i) {
        if (i < ROWS) {
            for (u32 k = 0; k < COPIES; ++k) copiers[k].copy(queue + i * STAGE, i);
        }
        commit_copies();
    }
    Chunk<ROWS> of;
    of.begin();
#pragma unroll
    for (u32 i = 0; i < ROWS; ++i) {
        wait_for_copies<DEPTH - 1>();
        __syncwarp();
        T* const stage = queue + i % DEPTH * STAGE + lane;
        Equation row = beyond_end();
        if (is_system && row_0 + i < length) {
            row.value = stage[0];
#if FEMTILE_RULE
            bands.row(first + system, row_0 + i, row.lower, row.diagonal, row.upper);
#else
            row.lower = stage[WARP];
            row.diagonal = stage[2 * WARP];
            row.upper = stage[3 * WARP];
#endif
            if (!PERIODIC && row_0 + i == 0) row.lower = (T)0;
            if (!PERIODIC && row_0 + i + 1 == length) row.upper = (T)0;
        }
        __syncwarp();
        if (i + DEPTH < ROWS) {
            for (u32 k = 0; k < COPIES; ++k) copiers[k].copy(queue + i % DEPTH * STAGE, i + DEPTH);
        }
        commit_copies();
        of.eliminate(i, row_0 + i, length, row);
    }
    const Reduced last = of.last(row_0), head = of.first(row_0, length);
    FEMTILE_SHARED u32 bad_rows[SYSTEMS];
    FEMTILE_SHARED T exchange[EXCHANGE];
    const Ends ends = exchange_chunks(
        exchange, bad_rows, last, head, of.wrap, system, chunk, (length - 1) / ROWS + 1, of.bad, ROWS);
    if (!is_system) return;
    T* const to = u + lines.start(first + system) + row_0 * lines.stride;
    T next = (T)0;
#pragma unroll
    for (u32 k = 0; k < ROWS; ++k) {
        const u32 i = ROWS - 1 - k;
        next = of.substitute(i, row_0 + i, length, next, ends.before, ends.s);
        if (row_0 + i < length) to[i * lines.stride] = next;
    }
    if (ends.bad != SOUND && chunk == 0) note_failure(status, lines, first + system, ends.bad);
}
