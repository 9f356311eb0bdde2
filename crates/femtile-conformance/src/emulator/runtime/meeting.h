// Where threads meet: barriers of a block, operations of a warp.
#pragma once
#include "machine.h"

enum Operation : u32 { SYNC, BALLOT, ANY, ALL, SHUFFLE };
enum Barrier : u32 { PLAIN, COUNT, AND, OR };

static const u32 NO_LANE = ~0u;

// Lets others run until somebody makes this thread ready again.
static void wait(Thread& thread, Whereabouts whereabouts) {
    thread.whereabouts = whereabouts;
    change(thread.context, scheduler);
    thread.whereabouts = RUNNING;
}

static u32 meet_block(u32 predicate, Site site) {
    Thread& thread = *current;
    thread.site = site;
    thread.value = predicate != 0;
    ++n_at_barrier;
    wait(thread, AT_BARRIER);
    return n_true;
}

// Opens the barrier that all threads of the block wait at.
static void open_barrier() {
    const Site& site = threads[0].site;
    n_true = n_at_barrier = 0;
    ++epoch;
    for (u32 i = 0; i < n_threads; ++i) {
        Thread& thread = threads[i];
        n_true += (u32)thread.value;
        const bool is_same_file = thread.site.file == site.file || strcmp(thread.site.file, site.file) == 0;
        if (thread.site.line != site.line || !is_same_file) {
            Finding finding = finding_at(BARRIERS_DIFFER, thread);
            finding.other_thread = 0;
            finding.other_file = site.file;
            finding.other_line = site.line;
            report(finding);
        }
        open_segment(thread);
    }
    for (u32 i = 0; i < n_warps; ++i) warps[i].ready = warps[i].exists;
}

// Makes every lane of the mask know what the others did before.
static void join_clocks(Warp& warp, Thread* lanes, u32 mask) {
    u32 joint[WARP] = {};
    for (u32 lane = 0; lane < WARP; ++lane) {
        if (!(mask >> lane & 1)) continue;
        for (u32 other = 0; other < WARP; ++other) {
            if (warp.seen[lane][other] > joint[other]) joint[other] = warp.seen[lane][other];
        }
    }
    for (u32 lane = 0; lane < WARP; ++lane) {
        if (mask >> lane & 1) joint[lane] = lanes[lane].clock;
    }
    for (u32 lane = 0; lane < WARP; ++lane) {
        if (!(mask >> lane & 1)) continue;
        memcpy(warp.seen[lane], joint, sizeof(joint));
        ++lanes[lane].clock;
        open_segment(lanes[lane]);
    }
}

static void shuffle(Thread* lanes, u32 mask) {
    u64 values[WARP];
    for (u32 lane = 0; lane < WARP; ++lane) values[lane] = lanes[lane].value;
    for (u32 left = mask; left != 0; left &= left - 1) {
        Thread& thread = lanes[__builtin_ctz(left)];
        if (mask >> thread.source & 1) {
            thread.value = values[thread.source];
            continue;
        }
        Finding finding = finding_at(INACTIVE_LANE, thread);
        finding.other_thread = thread.source;
        finding.mask = mask;
        report(finding);
    }
}

// Gives every lane of the mask its result, now that all are there.
static void carry_out(Warp& warp, Thread* lanes, u32 mask, u32 operation) {
    if (operation == SHUFFLE) return shuffle(lanes, mask);
    if (operation == SYNC) return join_clocks(warp, lanes, mask);
    u32 votes = 0;
    for (u32 left = mask; left != 0; left &= left - 1) {
        const u32 lane = (u32)__builtin_ctz(left);
        votes |= (u32)(lanes[lane].value != 0) << lane;
    }
    const u64 result = operation == BALLOT ? votes : operation == ANY ? votes != 0 : votes == mask;
    for (u32 left = mask; left != 0; left &= left - 1) lanes[__builtin_ctz(left)].value = result;
}

// A lane that waits with another mask, or for another operation, than those that it meets.
static u32 stranger(const Thread* lanes, u32 mask, u32 operation) {
    for (u32 left = mask; left != 0; left &= left - 1) {
        const u32 lane = (u32)__builtin_ctz(left);
        if (lanes[lane].mask != mask || lanes[lane].operation != operation) return lane;
    }
    return NO_LANE;
}

// Arrives at an operation of the lanes in `mask` and waits for the others.
static u64 meet_warp(u32 operation, u32 mask, u64 value, u32 source, Site site) {
    Thread& thread = *current;
    Warp& warp = warps[thread.warp];
    Thread* lanes = threads + thread.warp * WARP;
    mask &= warp.exists;
    thread.site = site;
    thread.operation = operation;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    if (!(mask >> thread.lane & 1)) {
        Finding finding = finding_at(NOT_IN_MASK, thread);
        finding.mask = mask;
        report(finding);
        abandon();
    }
    warp.waiting |= 1u << thread.lane;
    if ((warp.waiting & mask) != mask) {
        wait(thread, AT_OPERATION);
        return thread.value;
    }
    const u32 other = stranger(lanes, mask, operation);
    if (other != NO_LANE) {
        Finding finding = finding_at(OPERATIONS_DIFFER, thread);
        finding.mask = mask;
        finding.other_thread = lanes[other].number;
        finding.other_file = lanes[other].site.file;
        finding.other_line = lanes[other].site.line;
        report(finding);
        abandon();
    }
    carry_out(warp, lanes, mask, operation);
    warp.waiting &= ~mask;
    warp.ready |= mask & ~(1u << thread.lane);
    return thread.value;
}

// The lane whose value a lane takes; its own where that would lie outside its group of `width` lanes.
static u32 shuffle_source(u32 kind, u32 lane, u32 operand, u32 width) {
    const u32 first = lane & ~(width - 1), last = first + width - 1;
    if (kind == 0) return first | (operand & (width - 1));
    if (kind == 1) return lane >= first + operand ? lane - operand : lane;
    const u32 source = kind == 2 ? lane + operand : lane ^ operand;
    return source <= last ? source : lane;
}

// Somebody waits for a thread that never comes.
static void report_deadlock() {
    const Thread* waiting = nullptr;
    for (u32 i = 0; i < n_threads; ++i) {
        const Thread& thread = threads[i];
        if (thread.whereabouts == AT_OPERATION) waiting = &thread;
        if (thread.whereabouts == AT_BARRIER && waiting == nullptr) waiting = &thread;
    }
    if (waiting == nullptr) return;
    const bool is_warp = waiting->whereabouts == AT_OPERATION;
    Finding finding = finding_at(is_warp ? WARP_MISSED : BARRIER_MISSED, *waiting);
    finding.mask = waiting->mask;
    for (u32 i = n_threads; i-- > 0;) {
        const Thread& thread = threads[i];
        const bool is_wanted = !is_warp || (thread.warp == waiting->warp && waiting->mask >> thread.lane & 1);
        const bool is_there = thread.whereabouts == waiting->whereabouts &&
                              (!is_warp || thread.mask == waiting->mask);
        if (!is_wanted || is_there) continue;
        finding.missing = is_warp ? finding.missing | 1u << thread.lane : finding.missing + 1;
        finding.other_thread = thread.number;
        finding.other_whereabouts = thread.whereabouts;
        finding.other_file = thread.site.file;
        finding.other_line = thread.site.line;
    }
    report(finding);
}

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void __syncthreads(const char* file, unsigned line) { meet_block(0, {file, line}); }
HIDDEN int __syncthreads_count(int predicate, const char* file, unsigned line) {
    return (int)meet_block(predicate, {file, line});
}
HIDDEN int __syncthreads_and(int predicate, const char* file, unsigned line) {
    return meet_block(predicate, {file, line}) == n_threads;
}
HIDDEN int __syncthreads_or(int predicate, const char* file, unsigned line) {
    return meet_block(predicate, {file, line}) != 0;
}
HIDDEN void __syncwarp(unsigned mask, const char* file, unsigned line) { meet_warp(SYNC, mask, 0, 0, {file, line}); }
HIDDEN unsigned __ballot_sync(unsigned mask, int predicate, const char* file, unsigned line) {
    return (unsigned)meet_warp(BALLOT, mask, predicate != 0, 0, {file, line});
}
HIDDEN int __any_sync(unsigned mask, int predicate, const char* file, unsigned line) {
    return (int)meet_warp(ANY, mask, predicate != 0, 0, {file, line});
}
HIDDEN int __all_sync(unsigned mask, int predicate, const char* file, unsigned line) {
    return (int)meet_warp(ALL, mask, predicate != 0, 0, {file, line});
}

// Which lanes go together is the hardware's choice; here those that have not exited do.
HIDDEN unsigned __activemask() {
    u32 active = 0;
    const Warp& warp = warps[current->warp];
    for (u32 lane = 0; lane < WARP; ++lane) {
        const bool is_there = warp.exists >> lane & 1;
        if (is_there && threads[current->warp * WARP + lane].whereabouts != EXITED) active |= 1u << lane;
    }
    return active;
}

enum FemtileShuffle : unsigned int;
HIDDEN unsigned long long femtile_shuffle(unsigned mask, FemtileShuffle kind, unsigned long long bits,
                                          unsigned operand, int width, const char* file, unsigned line) {
    const u32 source = shuffle_source((u32)kind, current->lane, operand, (u32)width);
    return meet_warp(SHUFFLE, mask, bits, source, {file, line});
}

HIDDEN void __trap() {
    report(finding_at(TRAP, *current));
    abandon();
}
