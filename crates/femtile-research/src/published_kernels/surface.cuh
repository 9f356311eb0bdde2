// The product along x with inner values taken as zero: inner lines have only their two ends, surface lines all nodes
// ([cui2024], eq. (4.2)).
#pragma once
#include "contract.cuh"

template <typename Use>
__device__ inline void contract_surface(const T* matrix, const T* from, u32 own, Use use) {
    const Place<N, M, M> place(own);
    if (!place.is_active()) return;
    const T* const row = matrix + place.fast * M;
    const bool is_surface = place.slow == 0 || place.slow + 1 == M;
#pragma unroll
    for (u32 z = 0; z < M; ++z) {
        const T* const line = from + Whole::at(0, place.slow, z);
        T sum = row[0] * line[0] + row[M - 1] * line[M - 1];
        if (z == 0 || z + 1 == M || is_surface) {
#pragma unroll 3
            for (u32 j = 1; j + 1 < M; ++j) sum += row[j] * line[j];
        }
        use(place.fast, place.slow, z, sum);
    }
}
