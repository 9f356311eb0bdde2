// The last rows of the chunks of systems whose threads are not neighbours in one warp: they meet in shared memory.
#pragma once
#include "lanes.cuh"

const u32 EXCHANGE_LANES = CHUNKS < WARP ? CHUNKS : WARP, PER_LANE = CHUNKS / EXCHANGE_LANES;
// Numbers of shared memory that are needed.
const u32 EXCHANGE = 7 * SYSTEMS * (CHUNKS + 1);

// A chunk of `chunks` within a chunk of a warp: PER_LANE of them are a lane's.
__device__ inline T& exchanged(T* memory, u32 which, u32 system, u32 chunk) {
    return memory[(which * SYSTEMS + system) * (CHUNKS + 1) + chunk];
}

__device__ inline Reduced exchanged_reduced(T* memory, u32 which, u32 system, u32 chunk) {
    return {exchanged(memory, which, system, chunk), exchanged(memory, which + 1, system, chunk),
            exchanged(memory, which + 2, system, chunk)};
}

// The equation of the last row of `chunk`, of `n_chunks` that reach into the system.
__device__ inline Equation exchanged_equation(T* memory, u32 system, u32 chunk, u32 n_chunks) {
    if (chunk >= n_chunks) return beyond_end();
    Reduced last = exchanged_reduced(memory, 0, system, chunk);
    if (chunk + 1 < n_chunks) return reduced_equation(last, exchanged_reduced(memory, 3, system, chunk + 1));
    if (!PERIODIC) return {last.a, (T)1, (T)0, last.d};
    last.c = exchanged(memory, 6, system, 0);
    return reduced_equation(last, exchanged_reduced(memory, 3, system, 0));
}

// All threads call it with their chunk; `memory` holds EXCHANGE numbers, `bad_rows` SYSTEMS.
__device__ inline Ends exchange_chunks(
    T* memory, u32* bad_rows, const Reduced& last, const Reduced& first, T wrap, u32 system, u32 chunk, u32 n_chunks, u32 bad, u32 rows) {
    exchanged(memory, 0, system, chunk) = last.d;
    exchanged(memory, 1, system, chunk) = last.a;
    exchanged(memory, 2, system, chunk) = last.c;
    exchanged(memory, 3, system, chunk) = first.d;
    exchanged(memory, 4, system, chunk) = first.a;
    exchanged(memory, 5, system, chunk) = first.c;
    if (PERIODIC && chunk + 1 == n_chunks) exchanged(memory, 6, system, 0) = wrap;
    if (chunk == 0) bad_rows[system] = SOUND;
    __syncthreads();
    if (bad != SOUND) atomicMin(&bad_rows[system], bad);
    __syncthreads();
    if (threadIdx.x < SYSTEMS * EXCHANGE_LANES) {
        const u32 lane = threadIdx.x % EXCHANGE_LANES, of_lane = threadIdx.x / EXCHANGE_LANES, chunk_0 = lane * PER_LANE;
        Chunk<PER_LANE> chunks;
        chunks.begin();
#pragma unroll
        for (u32 i = 0; i < PER_LANE; ++i) {
            const Equation of = exchanged_equation(memory, of_lane, chunk_0 + i, n_chunks);
            chunks.eliminate(i, chunk_0 + i, n_chunks, of);
        }
        const Reduced end = chunks.last(chunk_0);
        if (chunks.bad != SOUND) chunks.bad = chunks.bad * rows + rows - 1;
        const Ends ends = solve_chunks<EXCHANGE_LANES>(
            end, chunks.first(chunk_0, n_chunks), chunks.wrap, lane, (n_chunks - 1) / PER_LANE + 1,
            lesser(chunks.bad, bad_rows[of_lane]), (chunk_0 + PER_LANE) * rows - 1);
        __syncwarp();
        T next = (T)0;
#pragma unroll
        for (u32 k = 0; k < PER_LANE; ++k) {
            const u32 i = PER_LANE - 1 - k;
            next = chunks.substitute(i, chunk_0 + i, n_chunks, next, ends.before, ends.s);
            exchanged(memory, 0, of_lane, chunk_0 + i + 1) = next;
        }
        if (lane == 0) {
            exchanged(memory, 0, of_lane, 0) = ends.before;
            bad_rows[of_lane] = ends.bad;
        }
    }
    __syncthreads();
    return {exchanged(memory, 0, system, chunk), exchanged(memory, 0, system, chunk + 1), bad_rows[system]};
}
