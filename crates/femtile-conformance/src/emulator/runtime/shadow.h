// Who touched which byte: finds accesses outside arrays, reads of unwritten memory, and races.
#pragma once
#include "machine.h"

// A segment and whether the access was atomic; for readers, also which bytes of the word.
typedef u32 Cell;
const u32 CELL_SHIFT = 5;

// Four bytes of memory: the last writer of each byte, and the last two readers each of even and of odd warps.
struct alignas(32) Granule {
    Cell writers[4];
    Cell readers[4];
};

// Memory that kernels share, with what is known of it.
struct Space {
    Address base;
    u64 bytes;
    u8* state;           // of a granule: bits 0–3 bytes that belong to an array, bits 4–7 bytes that were written
    Granule* granules;
    u32 first;           // accesses in segments before this one are ordered before all others
};

static Space device, fixed_shared, dynamic_shared;

static inline u32 segment_of(Cell cell) { return cell >> CELL_SHIFT; }
static inline u32 bytes_of(Cell cell) { return cell >> 1 & 15; }
static inline bool is_atomic(Cell cell) { return cell & 1; }

struct Attempt {
    Address address;
    u32 size;
    Access access;
    Address place;
};

static Finding finding_at(Kind kind, const Attempt& attempt) {
    Finding finding = {};
    finding.kind = kind;
    finding.thread = finding.other_thread = current->number;
    finding.access = attempt.access;
    finding.size = attempt.size;
    finding.address = attempt.address;
    finding.place = attempt.place - image_begin;
    return finding;
}

// Whether an earlier access of this block comes before what this thread does now.
static bool is_before(const Segment& earlier, const Thread& now) {
    if (earlier.thread == now.number || earlier.epoch < epoch) return true;
    if (earlier.thread / WARP != now.warp) return false;
    return earlier.clock <= warps[now.warp].seen[now.lane][earlier.thread % WARP];
}

static bool covers(const Release& release, u32 number, const Segment& earlier) {
    if (release.by.run != earlier.run) return false;
    if (earlier.epoch < release.by.epoch || number == release.atomic_segment) return true;
    if (earlier.epoch > release.by.epoch) return false;
    if (earlier.thread == release.by.thread) return number < release.fence_segment;
    return earlier.thread / WARP == release.by.thread / WARP &&
           earlier.clock <= release.seen[earlier.thread % WARP];
}

// Whether another block made an access known that this thread has learned of.
static bool is_known(u32 number, const Segment& earlier) {
    for (const Acquire& acquire : acquires) {
        if (!is_before(acquire.by, *current)) continue;
        for (u32 i = 0; i < acquire.n; ++i) {
            if (covers((*acquire.releases)[i], number, earlier)) return true;
        }
    }
    return false;
}

// Reports a race unless the earlier access comes before; both touch the same byte and one of them writes.
static __attribute__((noinline)) void meet(Cell earlier, bool was_write, const Attempt& attempt) {
    const u32 number = segment_of(earlier);
    const Segment& segment = segments[number - first_segment];
    const bool is_here = segment.run == run;
    if (is_here ? is_before(segment, *current) : is_known(number, segment)) return;
    Finding finding = finding_at(is_here ? RACE_IN_BLOCK : RACE_OF_BLOCKS, attempt);
    finding.other_thread = segment.thread;
    finding.other_block = block_of_run[segment.run];
    finding.other_access = is_atomic(earlier) ? ATOMIC : was_write ? WRITE : READ;
    report(finding);
}

// Whether an access belongs to another segment of this launch (of this block, for shared memory).
static inline bool is_foreign(Cell cell, u32 mine, u32 first) {
    return segment_of(cell) >= first && segment_of(cell) != mine;
}

template <Access access>
static inline void meet_writers(const Granule& granule, u32 mask, u32 mine, u32 first, const Attempt& attempt) {
    u64 halves[2];
    memcpy(halves, granule.writers, sizeof(halves));
    const Cell common = granule.writers[0];
    const bool is_one = halves[0] == halves[1] && halves[0] == common * 0x100000001ull;
    for (u32 i = 0; i < 4; ++i) {
        const Cell cell = granule.writers[i];
        const bool is_harmless = access == ATOMIC && is_atomic(cell);
        if (mask >> i & 1 && is_foreign(cell, mine, first) && !is_harmless) meet(cell, true, attempt);
        if (is_one) break;
    }
}

static inline void meet_readers(const Granule& granule, u32 mask, u32 mine, u32 first, const Attempt& attempt) {
    for (u32 i = 0; i < 4; ++i) {
        const Cell cell = granule.readers[i];
        if (is_foreign(cell, mine, first) && bytes_of(cell) & mask) meet(cell, false, attempt);
    }
}

// Of the readers of even and of odd warps the last two remain, so that one is left that a later writer is not
// itself, nor of its own warp.
static inline void note_reader(Granule& granule, u32 mask, Cell own) {
    Cell* readers = granule.readers + 2 * (current->warp % 2);
    if (segment_of(readers[0]) == segment_of(own)) {
        readers[0] |= mask << 1;
        return;
    }
    readers[1] = readers[0];
    readers[0] = own | mask << 1;
}

static __attribute__((noinline)) void check_state(u32 state, u32 mask, const Attempt& attempt) {
    if ((state & mask) != mask) {
        report(finding_at(OUT_OF_BOUNDS, attempt));
        abandon();
    }
    if (attempt.access != WRITE && (state >> 4 & mask) != mask) report(finding_at(UNWRITTEN, attempt));
}

template <Access access>
static inline void touch_granule(Granule& granule, u32 mask, u32 first, const Attempt& attempt) {
    const u32 mine = current->segment;
    const Cell own = mine << CELL_SHIFT | (access == ATOMIC);
    meet_writers<access>(granule, mask, mine, first, attempt);
    if (access == READ) return note_reader(granule, mask, own);
    meet_readers(granule, mask, mine, first, attempt);
    for (u32 i = 0; i < 4; ++i) {
        if (mask >> i & 1) granule.writers[i] = own;
    }
}

// Some bytes of a word.
template <Access access>
static inline void touch(Space& space, u64 word, u32 mask, const Attempt& attempt) {
    u8& state = space.state[word];
    const u32 needed = access == WRITE ? mask : mask * 0x11;
    if (__builtin_expect((state & needed) != needed, 0)) check_state(state, mask, attempt);
    if (access != READ) state |= mask << 4;
    touch_granule<access>(space.granules[word], mask, space.first, attempt);
}

// Two whole words at once, which mostly have the same past.
template <Access access>
static inline void touch_pair(Space& space, u64 word, const Attempt& attempt) {
    Granule* granules = space.granules + word;
    u64 past[8];
    memcpy(past, granules, sizeof(past));
    const bool is_same = ((past[0] ^ past[4]) | (past[1] ^ past[5]) | (past[2] ^ past[6]) | (past[3] ^ past[7])) == 0;
    uint16_t state;
    memcpy(&state, space.state + word, sizeof(state));
    const u32 needed = access == WRITE ? 0x0f0f : 0xffff;
    if (__builtin_expect(!is_same || (state & needed) != needed, 0)) {
        touch<access>(space, word, 15, attempt);
        touch<access>(space, word + 1, 15, attempt);
        return;
    }
    if (access != READ) memset(space.state + word, 0xff, 2);
    touch_granule<access>(granules[0], 15, space.first, attempt);
    granules[1] = granules[0];
}

// Memory that is none of the device's: constants of the program may be read, all else ends the launch.
static __attribute__((noinline)) Space* elsewhere(const Attempt& attempt) {
    const bool is_in_image = attempt.address >= image_begin && attempt.address < image_end;
    if (is_in_image && attempt.access == READ) return nullptr;
    report(finding_at(OUT_OF_BOUNDS, attempt));
    abandon();
}

// The memory that an address lies in; none for what belongs to one thread alone, and for constants.
static inline Space* space_of(const Attempt& attempt) {
    const Address address = attempt.address;
    if (address - device.base < device.bytes) return &device;
    if (address - reinterpret_cast<Address>(stacks.base) < Stacks::BYTES) return nullptr;
    if (address - fixed_shared.base < fixed_shared.bytes) return &fixed_shared;
    if (address - dynamic_shared.base < dynamic_shared.bytes) return &dynamic_shared;
    return elsewhere(attempt);
}

// An access of 1, 2, 4, 8 or 16 bytes to an address that is a multiple of that.
template <u32 size, Access access>
static inline void check(const void* pointer, Address place) {
    const Attempt attempt = {reinterpret_cast<Address>(pointer), size, access, place};
    Space* space = space_of(attempt);
    if (space == nullptr) return;
    const Address offset = attempt.address - space->base;
    if (size < 4) {
        touch<access>(*space, offset / 4, ((1u << size) - 1) << offset % 4, attempt);
    } else if (size == 4) {
        touch<access>(*space, offset / 4, 15, attempt);
    } else {
        for (u32 i = 0; i < size / 4; i += 2) touch_pair<access>(*space, offset / 4 + i, attempt);
    }
}

// An access of any size anywhere.
template <Access access>
static void check_range(const void* pointer, u64 size, Address place) {
    if (size == 0) return;
    const Attempt attempt = {reinterpret_cast<Address>(pointer), (u32)size, access, place};
    Space* space = space_of(attempt);
    if (space == nullptr) return;
    const Address begin = attempt.address - space->base, end = begin + size;
    for (Address word = begin / 4; word * 4 < end; ++word) {
        const u32 from = word * 4 < begin ? begin % 4 : 0, to = word * 4 + 4 > end ? end % 4 : 4;
        touch<access>(*space, word, (1u << to) - (1u << from), attempt);
    }
}
