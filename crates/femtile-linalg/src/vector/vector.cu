// Vectors: fill, copy, axpby, scale_by, dot, sum. A thread takes packs of 16 bytes.
#include "femtile.cuh"
#include "sums.cuh"

// Packs of one thread of an update; loads come first, so that all are under way at once.
const u32 PACKS = 2;

#define FOR_PACKS(k, pack) \
    for (u32 k = 0; k < PACKS; ++k) \
        if (const u64 pack = (blockIdx.x * (u64)PACKS + k) * blockDim.x + threadIdx.x; pack < n_packs)

// The entries behind the last whole pack, one for each of the first threads of the grid.
#define FOR_TAIL(i) \
    if (const u64 i = n_packs * Pack<T>::N + threadIdx.x; blockIdx.x == 0 && i < n)

// x = alpha. Writes n values.
extern "C" __global__ void vector_fill(T* x, T alpha, u64 n) {
    const u64 n_packs = n / Pack<T>::N;
    Pack<T> all;
    for (u32 j = 0; j < Pack<T>::N; ++j) all.value[j] = alpha;
    FOR_PACKS(k, pack) store_pack(x, pack, all);
    FOR_TAIL(i) x[i] = alpha;
}

// y = x. Reads n, writes n values.
extern "C" __global__ void vector_copy(T* y, const T* x, u64 n) {
    const u64 n_packs = n / Pack<T>::N;
    Pack<T> read[PACKS];
    FOR_PACKS(k, pack) read[k] = load_pack(x, pack);
    FOR_PACKS(k, pack) store_pack(y, pack, read[k]);
    FOR_TAIL(i) y[i] = x[i];
}

// y = alpha x + beta y. Reads 2n, writes n values.
extern "C" __global__ void vector_axpby(T* y, T alpha, const T* x, T beta, u64 n) {
    const u64 n_packs = n / Pack<T>::N;
    Pack<T> read_x[PACKS], read_y[PACKS];
    FOR_PACKS(k, pack) {
        read_x[k] = load_pack(x, pack);
        read_y[k] = load_pack(y, pack);
    }
    FOR_PACKS(k, pack) {
        for (u32 j = 0; j < Pack<T>::N; ++j) {
            read_y[k].value[j] = alpha * read_x[k].value[j] + beta * read_y[k].value[j];
        }
        store_pack(y, pack, read_y[k]);
    }
    FOR_TAIL(i) y[i] = alpha * x[i] + beta * y[i];
}

// z_i = d_i r_i. Reads 2n, writes n values.
extern "C" __global__ void vector_scale_by(T* z, const T* d, const T* r, u64 n) {
    const u64 n_packs = n / Pack<T>::N;
    Pack<T> read_d[PACKS], read_r[PACKS];
    FOR_PACKS(k, pack) {
        read_d[k] = load_pack(d, pack);
        read_r[k] = load_pack(r, pack);
    }
    FOR_PACKS(k, pack) {
        for (u32 j = 0; j < Pack<T>::N; ++j) read_r[k].value[j] *= read_d[k].value[j];
        store_pack(z, pack, read_r[k]);
    }
    FOR_TAIL(i) z[i] = d[i] * r[i];
}

// result = x.y in f64, over blocks of BLOCK entries. Reads 2n values.
extern "C" __global__ void vector_dot(
    double* result, double* partials, u32* counter, const T* x, const T* y, u64 n) {
    double sum = 0.0;
    if (block_is_whole(n)) {
        Pack<T> read_x[BLOCK_PACKS], read_y[BLOCK_PACKS];
        for (u32 k = 0; k < BLOCK_PACKS; ++k) {
            read_x[k] = load_pack(x, block_pack(k));
            read_y[k] = load_pack(y, block_pack(k));
        }
        for (u32 k = 0; k < BLOCK_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) {
                sum += (double)read_x[k].value[j] * (double)read_y[k].value[j];
            }
        }
    } else {
        for (u64 i = block_entry(); i < n; i += blockDim.x) sum += (double)x[i] * (double)y[i];
    }
    sum_over_blocks(result, partials, counter, sum);
}

// result = sum of x_i in f64, over blocks of BLOCK entries. Reads n values.
extern "C" __global__ void vector_sum(double* result, double* partials, u32* counter, const T* x, u64 n) {
    double sum = 0.0;
    if (block_is_whole(n)) {
        Pack<T> read[BLOCK_PACKS];
        for (u32 k = 0; k < BLOCK_PACKS; ++k) read[k] = load_pack(x, block_pack(k));
        for (u32 k = 0; k < BLOCK_PACKS; ++k) {
            for (u32 j = 0; j < Pack<T>::N; ++j) sum += (double)read[k].value[j];
        }
    } else {
        for (u64 i = block_entry(); i < n; i += blockDim.x) sum += (double)x[i];
    }
    sum_over_blocks(result, partials, counter, sum);
}
