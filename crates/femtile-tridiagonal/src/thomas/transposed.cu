// Elimination row by row for lines of contiguous entries, a thread a system, with tiles transposed on the way:
// in shared memory, [laszlo2016], Alg. 8, or by shuffles of packs between four lanes, Alg. 9.
//
// A warp takes 32 systems and reads TILE rows of all of them at once. The modified right side and upper band go to
// scratch, an entry for each row and each thread. Reads 4 values a row, writes one; 4 values of scratch go forth and
// back.
#include "equation.cuh"
#include "femtile.cuh"
#include "reciprocal.cuh"

const u32 WARPS = 4, THREADS = WARPS * WARP;
#if FEMTILE_SHUFFLE
const u32 QUAD = 4, WIDTH = Pack<T>::N, TILE = QUAD * WIDTH;
#else
const u32 TILE = 8, PITCH = TILE + 1;
#endif

// TILE rows of the 32 systems of a warp, one system a lane.
struct Rows {
    T value[TILE];
};

#if FEMTILE_SHUFFLE
// Transposes packs between the four lanes of a quad: pack k of lane l goes to pack l of lane k.
__device__ inline void transpose(Pack<T>* packs, u32 lane) {
#pragma unroll
    for (u32 s = 1; s < QUAD; s *= 2) {
#pragma unroll
        for (u32 k = 0; k < QUAD; ++k) {
            if (k & s) continue;
#pragma unroll
            for (u32 j = 0; j < WIDTH; ++j) {
                const T sent = lane & s ? packs[k].value[j] : packs[k + s].value[j];
                const T got = __shfl_xor_sync(FULL_WARP, sent, s);
                if (lane & s) {
                    packs[k].value[j] = got;
                } else {
                    packs[k + s].value[j] = got;
                }
            }
        }
    }
}
#endif

// Reads rows row_0..row_0 + TILE of the systems that begin at `starts`, a place for each lane.
__device__ inline Rows read_rows(const T* array, u64 start, bool is_line, u32 row_0, u32 length, T* tile) {
    Rows rows;
    const u32 lane = threadIdx.x % WARP;
#if FEMTILE_SHUFFLE
    Pack<T> packs[QUAD];
#pragma unroll
    for (u32 k = 0; k < QUAD; ++k) {
        const u64 of_system = __shfl_sync(FULL_WARP, start, lane / QUAD * QUAD + k);
        const bool is_system = __shfl_sync(FULL_WARP, is_line ? 1u : 0u, lane / QUAD * QUAD + k) != 0;
        const u32 row = row_0 + lane % QUAD * WIDTH;
        if (is_system && row < length) {
            packs[k] = *reinterpret_cast<const Pack<T>*>(array + of_system + row);
        } else {
            for (u32 j = 0; j < WIDTH; ++j) packs[k].value[j] = (T)0;
        }
    }
    transpose(packs, lane);
#pragma unroll
    for (u32 i = 0; i < TILE; ++i) rows.value[i] = packs[i / WIDTH].value[i % WIDTH];
#else
    __syncwarp();
#pragma unroll
    for (u32 k = 0; k < TILE; ++k) {
        const u32 system = (k * WARP + lane) / TILE, row = row_0 + lane % TILE;
        const u64 of_system = __shfl_sync(FULL_WARP, start, system);
        const bool is_system = __shfl_sync(FULL_WARP, is_line ? 1u : 0u, system) != 0;
        tile[system * PITCH + lane % TILE] = is_system && row < length ? array[of_system + row] : (T)0;
    }
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < TILE; ++i) rows.value[i] = tile[lane * PITCH + i];
#endif
    return rows;
}

__device__ inline void write_rows(T* array, u64 start, bool is_line, u32 row_0, u32 length, T* tile, const Rows& rows) {
    const u32 lane = threadIdx.x % WARP;
#if FEMTILE_SHUFFLE
    Pack<T> packs[QUAD];
#pragma unroll
    for (u32 i = 0; i < TILE; ++i) packs[i / WIDTH].value[i % WIDTH] = rows.value[i];
    transpose(packs, lane);
#pragma unroll
    for (u32 k = 0; k < QUAD; ++k) {
        const u64 of_system = __shfl_sync(FULL_WARP, start, lane / QUAD * QUAD + k);
        const bool is_system = __shfl_sync(FULL_WARP, is_line ? 1u : 0u, lane / QUAD * QUAD + k) != 0;
        const u32 row = row_0 + lane % QUAD * WIDTH;
        if (is_system && row < length) *reinterpret_cast<Pack<T>*>(array + of_system + row) = packs[k];
    }
#else
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < TILE; ++i) tile[lane * PITCH + i] = rows.value[i];
    __syncwarp();
#pragma unroll
    for (u32 k = 0; k < TILE; ++k) {
        const u32 system = (k * WARP + lane) / TILE, row = row_0 + lane % TILE;
        const u64 of_system = __shfl_sync(FULL_WARP, start, system);
        const bool is_system = __shfl_sync(FULL_WARP, is_line ? 1u : 0u, system) != 0;
        if (is_system && row < length) array[of_system + row] = tile[system * PITCH + lane % TILE];
    }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) tridiagonal_thomas_transposed(
    T* u, const T* d, const T* a, const T* b, const T* c, Lines lines, u64* status, Bands bands, T* scratch) {
#if FEMTILE_SHUFFLE
    T* const tile = nullptr;
#else
    FEMTILE_SHARED T tiles[WARPS * WARP * PITCH];
    T* const tile = tiles + threadIdx.x / WARP * (WARP * PITCH);
#endif
    const u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, n_threads = gridDim.x * (u64)blockDim.x;
    const u32 length = (u32)lines.length;
    T* const c_stars = scratch + thread;
    T* const d_stars = scratch + thread + lines.length * n_threads;
    for (u64 line_0 = thread - threadIdx.x % WARP; line_0 < lines.n_lines; line_0 += n_threads) {
        const u64 line = line_0 + threadIdx.x % WARP;
        const bool is_line = line < lines.n_lines;
        const u64 start = is_line ? lines.start((u32)line) : 0, band_start = is_line ? lines.band_start((u32)line) : 0;
        T c_star = (T)0, d_star = (T)0;
        u32 bad = SOUND;
        for (u32 row_0 = 0; row_0 < length; row_0 += TILE) {
            const Rows lower = read_rows(a, band_start, is_line, row_0, length, tile);
            const Rows diagonal = read_rows(b, band_start, is_line, row_0, length, tile);
            const Rows upper = read_rows(c, band_start, is_line, row_0, length, tile);
            const Rows value = read_rows(d, start, is_line, row_0, length, tile);
#pragma unroll
            for (u32 i = 0; i < TILE; ++i) {
                const u32 row = row_0 + i;
                if (row >= length) break;
                const T own = row == 0 ? (T)0 : lower.value[i];
                const T pivot = diagonal.value[i] - own * c_star;
                const T r = reciprocal(pivot);
                d_star = r * (value.value[i] - own * d_star);
                c_star = row + 1 == length ? (T)0 : r * upper.value[i];
                if (bad == SOUND && !(is_sound(pivot, diagonal.value[i]) && is_finite(c_star) && is_finite(d_star))) bad = row;
                c_stars[row * n_threads] = c_star;
                d_stars[row * n_threads] = d_star;
            }
        }
        T next = (T)0;
        for (u32 row_0 = (length - 1) / TILE * TILE;; row_0 -= TILE) {
            Rows rows;
#pragma unroll
            for (u32 k = 0; k < TILE; ++k) {
                const u32 i = TILE - 1 - k, row = row_0 + i;
                if (row < length) next = d_stars[row * n_threads] - c_stars[row * n_threads] * next;
                if (bad != SOUND) next = not_a_number();
                rows.value[i] = next;
            }
            write_rows(u, start, is_line, row_0, length, tile, rows);
            if (row_0 == 0) break;
        }
        if (bad != SOUND && is_line) note_failure(status, lines, line, bad);
    }
}
