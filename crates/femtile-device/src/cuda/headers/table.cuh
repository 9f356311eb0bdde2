// A table of keys in shared memory, of which each slot is taken once.
#pragma once
#include "lanes.cuh"

// The slot of a key in a table of `slots` slots, a power of two and not full of others; `is_new` where it was not there
// before. Empty slots are NONE.
__device__ inline u32 place(u32* keys, u32 slots, u32 key, bool& is_new) {
    u32 slot = (key * 0x9e3779b1u >> 8) & (slots - 1);
    for (u32 tries = 1; tries < slots; ++tries) {
        const u32 found = atomicCAS(&keys[slot], NONE, key);
        is_new = found == NONE;
        if (is_new || found == key) return slot;
        slot = (slot + 1) & (slots - 1);
    }
    return slot;
}
