// Adds to y what tiles have left open, in order.
#include "femtile.cuh"
#include "segmented.cuh"

// y[row] += sum over the carries of that row, which lie side by side. Reads 4 bytes and a value a carry; what is open
// at the end of a block goes to the arrays of the next launch.
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS) carry_add(
    T* y, u32* open_rows, T* open_sums, const u32* rows, const T* sums, u64 n) {
    const u64 carry = blockIdx.x * (u64)SEGMENT_THREADS + threadIdx.x;
    const u32 row = carry < n ? rows[carry] : NO_ROW;
    const u32 next_row = carry + 1 < n ? rows[carry + 1] : NO_ROW;
    const u32 end_of[1] = {row != next_row ? row : NO_ROW};
    const T term[1] = {carry < n ? sums[carry] : 0};
    const T open = sum_rows<true>(y, end_of, term);
    if (threadIdx.x == SEGMENT_THREADS - 1) {
        open_rows[blockIdx.x] = row;
        open_sums[blockIdx.x] = open;
    }
}
