// Fences and atomic operations, by which blocks learn of each other; asynchronous copies.
#pragma once
#include "shadow.h"

#define PLACE reinterpret_cast<Address>(__builtin_return_address(0))
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void __threadfence() {
    Thread& thread = *current;
    thread.has_fenced = true;
    thread.fence = segment_now(thread);
    memcpy(thread.fence_seen, warps[thread.warp].seen[thread.lane], sizeof(thread.fence_seen));
    open_segment(thread);
    thread.fence_segment = thread.segment;
}

static void release(Thread& thread, std::vector<Release>& known) {
    Release release;
    release.by = thread.fence;
    release.fence_segment = thread.fence_segment;
    release.atomic_segment = thread.segment;
    memcpy(release.seen, thread.fence_seen, sizeof(release.seen));
    known.push_back(release);
}

// What comes with every atomic operation: the checks of an access, and what its thread learns and makes known.
// A thread that has met a fence gives the operation a segment of its own.
static void note_atomic(const void* pointer, u32 size, Address place) {
    Thread& thread = *current;
    const Address address = reinterpret_cast<Address>(pointer);
    if (++n_atomics == MANY_ATOMICS) {
        report(finding_at(WAITS_FOREVER, Attempt{address, size, ATOMIC, place}));
        abandon();
    }
    const auto known = releases.find(address);
    if (known != releases.end()) {
        acquires.push_back({&known->second, (u32)known->second.size(), segment_now(thread)});
    }
    if (thread.has_fenced) open_segment(thread);
    if (size == 4) {
        check<4, ATOMIC>(pointer, place);
    } else {
        check<8, ATOMIC>(pointer, place);
    }
    if (thread.has_fenced && address - device.base < device.bytes) {
        release(thread, releases[address]);
        open_segment(thread);
    }
}

template <typename V, typename Act>
static inline V change_value(V* pointer, Address place, Act act) {
    note_atomic(pointer, sizeof(V), place);
    const V before = *pointer;
    *pointer = act(before);
    return before;
}

#define FEMTILE_ATOMIC(V, name, expression) \
    HIDDEN V name(V* pointer, V value) {    \
        return change_value(pointer, PLACE, [=]([[maybe_unused]] V old) -> V { return expression; }); \
    }
#define FEMTILE_ATOMICS(V)                                        \
    FEMTILE_ATOMIC(V, atomicAdd, old + value)                     \
    FEMTILE_ATOMIC(V, atomicSub, old - value)                     \
    FEMTILE_ATOMIC(V, atomicMin, value < old ? value : old)       \
    FEMTILE_ATOMIC(V, atomicMax, old < value ? value : old)       \
    FEMTILE_ATOMIC(V, atomicAnd, old & value)                     \
    FEMTILE_ATOMIC(V, atomicOr, old | value)                      \
    FEMTILE_ATOMIC(V, atomicXor, old ^ value)                     \
    FEMTILE_ATOMIC(V, atomicExch, value)                          \
    HIDDEN V atomicCAS(V* pointer, V expected, V value) {         \
        return change_value(pointer, PLACE, [=](V old) -> V { return old == expected ? value : old; }); \
    }
FEMTILE_ATOMICS(int)
FEMTILE_ATOMICS(unsigned int)
FEMTILE_ATOMICS(unsigned long long)
FEMTILE_ATOMIC(float, atomicAdd, old + value)
FEMTILE_ATOMIC(double, atomicAdd, old + value)
FEMTILE_ATOMIC(float, atomicExch, value)
FEMTILE_ATOMIC(double, atomicExch, value)

// The source is read and the target given up at once; what is read arrives when its group is waited for.
HIDDEN void femtile_emulate_copy(void* to, const void* from, unsigned bytes) {
    const Attempt attempt = {reinterpret_cast<Address>(to), bytes, WRITE, PLACE};
    const Space* space = space_of(attempt);
    const bool is_shared = space == &fixed_shared || space == &dynamic_shared;
    if (!is_shared || (attempt.address | reinterpret_cast<Address>(from)) % bytes != 0) {
        report(finding_at(is_shared ? MISALIGNED : OUT_OF_BOUNDS, attempt));
        abandon();
    }
    check_range<READ>(from, bytes, PLACE);
    check_range<WRITE>(to, bytes, PLACE);
    for (u32 i = 0; i < bytes / 4; ++i) space->state[(attempt.address - space->base) / 4 + i] &= 15;
    current->copies.push_back({static_cast<u8*>(to), static_cast<const u8*>(from), bytes, current->copy_group});
}
HIDDEN void femtile_emulate_commit() { ++current->copy_group; }
HIDDEN void femtile_emulate_wait(unsigned groups_left) {
    std::vector<PendingCopy>& copies = current->copies;
    u32 n_left = 0;
    for (const PendingCopy& copy : copies) {
        if (copy.group + groups_left >= current->copy_group) {
            copies[n_left++] = copy;
            continue;
        }
        check_range<WRITE>(copy.to, copy.bytes, PLACE);
        memcpy(copy.to, copy.from, copy.bytes);
    }
    copies.resize(n_left);
}
