// Block tridiagonal systems: A_i u_{i-1} + B_i u_i + C_i u_{i+1} = d_i with blocks of M rows, M threads a system.
//
//   C*_i = (B_i - A_i C*_{i-1})^{-1} C_i,  d*_i = (B_i - A_i C*_{i-1})^{-1} (d_i - A_i d*_{i-1}),
//   u_i = d*_i - C*_i u_{i+1}
//
// [laszlo2016], Alg. 12. Block i of system p is number i row_stride + p system_stride of its array, row-major inside.
// d* stands in u, and C* in blocks numbered i P + p, written by columns and read by rows.
//
// `status` holds the number of systems that failed and the least p N + i among them.
#include "block.cuh"
#include "copy.cuh"

const u32 SHUFFLE_THREADS = 128, SHARED_THREADS = 64;
// Of the variant with shared memory: entries from a block of a stage to the next, and rows under way at once.
const u32 STRIDE = FEMTILE_STRIDE, STAGES = FEMTILE_STAGES;

struct Batch {
    u64 n_systems, row_stride, system_stride;
    u32 n_rows;
};

// The system of a thread; those beyond the last repeat it, and write nothing.
struct Own {
    Place place;
    u64 system;
    bool is_active, is_warp_idle;

    __device__ inline explicit Own(u64 n_systems) {
        const u64 warp = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
        const u64 number = warp * GROUPS + place.group;
        is_warp_idle = warp * GROUPS >= n_systems;
        is_active = !place.is_spare && number < n_systems;
        system = number < n_systems ? number : n_systems - 1;
    }
};

// Subtracts column k of A times entries k of C*_{i-1} and d*_{i-1}.
__device__ inline void subtract(T (&w)[M], T (&r)[M], const T (&a)[M], T c_star, T d_star) {
#pragma unroll
    for (u32 i = 0; i < M; ++i) {
        w[i] -= a[i] * c_star;
        r[i] -= a[i] * d_star;
    }
}

// Writes d*_i and C*_i, whose column a thread holds.
__device__ inline void store(T* u, T* c_star, const Own& own, u64 block, u64 star, const T (&c)[M],
                             const T (&r)[M], bool is_last) {
    const T value = entry_of(r, own.place.column);
    if (!own.is_active) return;
    u[block * M + own.place.column] = value;
    if (is_last) return;
#pragma unroll
    for (u32 i = 0; i < M; ++i) c_star[(star * M + i) * M + own.place.column] = c[i];
}

// The least row of those that threads of a group found unsound.
__device__ inline u32 first_unsound(const Place& place, u32 row) {
    u32 least = row;
#pragma unroll
    for (u32 k = 0; k < M; ++k) {
        const u32 other = __shfl_sync(FULL_WARP, row, int(place.group * M + k));
        least = other < least ? other : least;
    }
    return least;
}

// u_i = d*_i - C*_i u_{i+1} from the last row but one; thread j has row j. NaN everywhere where a row is unsound.
template <typename Exchange>
__device__ inline void substitute_back(Exchange& exchange, const Own& own, const Batch& batch, T* u,
                                       const T* c_star, bool has_failed) {
    const u32 j = own.place.column;
    const T nan = T(0) / T(0);
    __syncwarp();   // the other threads of the group wrote columns of C*
    u64 block = (batch.n_rows - 1) * batch.row_stride + own.system * batch.system_stride;
    u64 star = (batch.n_rows - 1) * batch.n_systems + own.system;
    T value = has_failed || !own.is_active ? nan : u[block * M + j];
    if (has_failed && own.is_active) u[block * M + j] = nan;
    T next_row[M], next_d = T(0);
    for (u32 n = batch.n_rows; n-- > 0;) {
        T row[M], all[M], result = next_d;
#pragma unroll
        for (u32 k = 0; k < M; ++k) row[k] = next_row[k];
        if (n > 0) {
#pragma unroll
            for (u32 k = 0; k < M; ++k) next_row[k] = c_star[((star - batch.n_systems) * M + j) * M + k];
            next_d = own.is_active ? u[(block - batch.row_stride) * M + j] : T(0);
        }
        if (n + 1 < batch.n_rows) {
            exchange.gather(all, value);
#pragma unroll
            for (u32 k = 0; k < M; ++k) result -= row[k] * all[k];
            value = has_failed ? nan : result;
            if (own.is_active) u[block * M + j] = value;
        }
        block -= batch.row_stride;
        star -= batch.n_systems;
    }
}

// Ends a system: the backward pass, and a note where a pivot failed.
template <typename Exchange>
__device__ inline void finish(Exchange& exchange, const Own& own, const Batch& batch, T* u, const T* c_star,
                              u64* status, u32 unsound) {
    const u32 row = first_unsound(own.place, unsound);
    substitute_back(exchange, own, batch, u, c_star, row != NO_ROW);
    if (row == NO_ROW || !own.is_active || own.place.column != 0) return;
    atomicAdd(&status[0], u64(1));
    atomicMin(&status[1], own.system * batch.n_rows + row);
}

// Column j of the blocks of a row, and entry j of its right side. The first A and the last C are not read, and right
// sides by active threads alone: they may stand where other threads of the warp write.
struct Row {
    T a[M], b[M], c[M], d;

    __device__ inline void load(const T* lower, const T* diagonal, const T* upper, const T* right, u64 block,
                                const Own& own, bool is_first, bool is_last) {
        const u32 j = own.place.column;
#pragma unroll
        for (u32 i = 0; i < M; ++i) a[i] = is_first ? T(0) : lower[(block * M + i) * M + j];
#pragma unroll
        for (u32 i = 0; i < M; ++i) b[i] = diagonal[(block * M + i) * M + j];
#pragma unroll
        for (u32 i = 0; i < M; ++i) c[i] = is_last ? T(0) : upper[(block * M + i) * M + j];
        d = own.is_active ? right[block * M + j] : T(0);
    }
};

// Columns go from thread to thread by register shuffles; the next row is loaded while one is eliminated, where there
// are registers for both.
const bool IS_LOADED_AHEAD = M * sizeof(T) <= 64;

extern "C" __global__ void __launch_bounds__(SHUFFLE_THREADS, 1)
    block_thomas_shuffle(T* u, const T* d, const T* a, const T* b, const T* c, T* c_star, u64* status, u64 n_systems,
                         u64 row_stride, u64 system_stride, u32 n_rows) {
    const Batch batch = {n_systems, row_stride, system_stride, n_rows};
    const Own own(n_systems);
    if (own.is_warp_idle) return;
    const u32 j = own.place.column;
    ByShuffle exchange(own.place);
    u64 block = own.system * system_stride, star = own.system;
    T right[1][M], r[M];
    Row next;
    if (IS_LOADED_AHEAD) next.load(a, b, c, d, block, own, true, n_rows == 1);
    u32 unsound = NO_ROW;
    for (u32 n = 0; n < n_rows; ++n) {
        if (!IS_LOADED_AHEAD) next.load(a, b, c, d, block, own, n == 0, n + 1 == n_rows);
        const Row row = next;
        const u64 next_block = block + row_stride;
        if (IS_LOADED_AHEAD && n + 1 < n_rows) next.load(a, b, c, d, next_block, own, false, n + 2 == n_rows);
        T w[M], value[M];
#pragma unroll
        for (u32 i = 0; i < M; ++i) w[i] = row.b[i];
        exchange.gather(value, row.d);
        if (n > 0) {
#pragma unroll
            for (u32 k = 0; k < M; ++k) {
                T column[M];
                exchange.column(column, row.a, k);
                subtract(w, value, column, right[0][k], r[k]);
            }
        }
#pragma unroll
        for (u32 i = 0; i < M; ++i) {
            right[0][i] = row.c[i];
            r[i] = value[i];
        }
        const bool is_sound = eliminate<ByShuffle, 1>(exchange, j, w, entry_of(row.b, j), right, r);
        if (!is_sound && unsound == NO_ROW) unsound = n;
        store(u, c_star, own, block, star, right[0], r, n + 1 == n_rows);
        block = next_block;
        star += n_systems;
    }
    finish(exchange, own, batch, u, c_star, status, unsound);
}

// A row of a warp's systems in shared memory: A, B, C by group, then d.
struct Stage {
    T* values;

    __device__ inline T* block(u32 band, u32 group) const { return values + (band * GROUPS + group) * STRIDE; }
    __device__ inline T* right(u32 group) const { return values + 3 * GROUPS * STRIDE + group * M; }

    __device__ inline void copy(u32 band, const T* from, u64 number, const Place& place) const {
#pragma unroll
        for (u32 i = 0; i < M; ++i) {
            const u32 entry = i * M + place.column;
            copy_async(&block(band, place.group)[entry], &from[number * M * M + entry]);
        }
    }
};

const u32 STAGE_SIZE = GROUPS * (3 * STRIDE + M);
const u32 WARP_SIZE = STAGES * STAGE_SIZE + GROUPS * 2 * M;

// Rows are copied to shared memory some ahead; columns go from thread to thread through it as well.
extern "C" __global__ void __launch_bounds__(SHARED_THREADS, 1)
    block_thomas_shared(T* u, const T* d, const T* a, const T* b, const T* c, T* c_star, u64* status, u64 n_systems,
                        u64 row_stride, u64 system_stride, u32 n_rows) {
    FEMTILE_DYNAMIC_SHARED(T, shared);
    const Batch batch = {n_systems, row_stride, system_stride, n_rows};
    const Own own(n_systems);
    if (own.is_warp_idle) return;
    const u32 j = own.place.column, group = own.place.group;
    T* of_warp = shared + threadIdx.x / WARP * WARP_SIZE;
    ByShared exchange(own.place, of_warp + STAGES * STAGE_SIZE);
    const u64 first = own.system * system_stride;
    u64 star = own.system;
    T right[1][M], r[M];
    u32 unsound = NO_ROW;
    // Row n is asked for in round n, STAGES - 1 rounds before it is eliminated.
    for (u32 round = 0; round < n_rows + STAGES - 1; ++round) {
        if (round < n_rows && !own.place.is_spare) {
            const Stage stage = {of_warp + round % STAGES * STAGE_SIZE};
            const u64 block = first + round * row_stride;
            if (round > 0) stage.copy(0, a, block, own.place);
            stage.copy(1, b, block, own.place);
            if (round + 1 < n_rows) stage.copy(2, c, block, own.place);
            T* value = &stage.right(group)[j];
            if (own.is_active) copy_async(value, &d[block * M + j]);
            else *value = T(0);
        }
        commit_copies();
        if (round < STAGES - 1) continue;
        const u32 n = round - (STAGES - 1);
        wait_for_copies<STAGES - 1>();
        __syncwarp();
        const Stage stage = {of_warp + n % STAGES * STAGE_SIZE};
        const T *lower = stage.block(0, group), *diagonal = stage.block(1, group), *upper = stage.block(2, group);
        T w[M], value[M];
#pragma unroll
        for (u32 i = 0; i < M; ++i) {
            w[i] = diagonal[i * M + j];
            value[i] = stage.right(group)[i];
        }
        if (n > 0) {
#pragma unroll
            for (u32 k = 0; k < M; ++k) {
                T column[M];
#pragma unroll
                for (u32 i = 0; i < M; ++i) column[i] = lower[i * M + k];
                subtract(w, value, column, right[0][k], r[k]);
            }
        }
#pragma unroll
        for (u32 i = 0; i < M; ++i) {
            right[0][i] = n + 1 < n_rows ? upper[i * M + j] : T(0);
            r[i] = value[i];
        }
        const T own_diagonal = diagonal[j * M + j];
        // All lanes have read the stage at this barrier, before it is overwritten.
        const bool is_sound = eliminate<ByShared, 1>(exchange, j, w, own_diagonal, right, r);
        if (!is_sound && unsound == NO_ROW) unsound = n;
        store(u, c_star, own, first + n * row_stride, star, right[0], r, n + 1 == n_rows);
        star += n_systems;
    }
    finish(exchange, own, batch, u, c_star, status, unsound);
}
