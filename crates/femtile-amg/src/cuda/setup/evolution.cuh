// Entries that strength by evolution keeps apart from those that are large.
#pragma once
#include "lanes.cuh"

// Rows whose positive entries hide the direction of strong coupling, and for each entry of theirs whether it is near; null
// where there are no such rows.
struct Evolution {
    const u32* is_doubtful;
    const T* near;
};

// The place of a column in a row, whose columns ascend; NONE where it has none.
__device__ inline u32 place_of(Rows a, u64 row, u32 column) {
    u32 begin = a.offsets[row], end = a.offsets[row + 1];
    while (begin < end) {
        const u32 middle = begin + (end - begin) / 2;
        if (a.columns[middle] < column) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < a.offsets[row + 1] && a.columns[begin] == column ? begin : NONE;
}

// Whether the entry e of a row counts: it is in no doubtful row or column, or near by one of them.
__device__ inline bool counts(Evolution evolution, Rows a, u64 row, u32 e) {
    if (evolution.near == 0) return true;
    const u32 column = a.columns[e];
    if (evolution.is_doubtful[row] == 0 && evolution.is_doubtful[column] == 0) return true;
    if (evolution.near[e] > 0) return true;
    const u32 place = place_of(a, column, (u32)row);
    return place != NONE && evolution.near[place] > 0;
}
