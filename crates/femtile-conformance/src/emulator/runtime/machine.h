// The state of a launch: segments, threads, warps, the block that runs.
//
// A segment is what one thread does between two points at which others may come to know of it; each has a number,
// higher than all before it on this device. The record of an access is the number of its segment.
#pragma once
#include <cstring>
#include <unordered_map>
#include <vector>

#include "fiber.h"
#include "interface.h"

const u32 WARP = 32;
const u32 N_SEGMENTS = 1u << 27;

struct Segment {
    u32 run;     // of the block, in the order in which blocks run
    u32 epoch;   // barriers of the block before it
    u32 clock;   // of the lane
    u32 thread;
};

// What a thread made known by a fence and an atomic operation after it.
struct Release {
    Segment by;           // as the fence was met
    u32 fence_segment;    // the first after the fence
    u32 atomic_segment;   // that of the operation alone
    u32 seen[WARP];       // clocks of the lanes of the warp that the fence covers
};

// What a block learned by an atomic operation: the first `n` of the releases at that address.
struct Acquire {
    const std::vector<Release>* releases;
    u32 n;
    Segment by;
};

struct Site {
    const char* file;
    u32 line;
};

struct PendingCopy {
    u8* to;
    const u8* from;
    u32 bytes;
    u32 group;
};

struct Thread {
    Context context;
    u32 index[3];
    u32 number, lane, warp;
    u32 stack;
    bool has_stack;
    Whereabouts whereabouts;
    u32 segment, clock;
    Site site;
    // The operation of a warp, or the barrier, that it waits at.
    u32 operation, mask, source;
    u64 value;
    // Its last fence.
    bool has_fenced;
    Segment fence;
    u32 fence_segment;
    u32 fence_seen[WARP];
    // Asynchronous copies.
    std::vector<PendingCopy> copies;
    u32 copy_group;
};

struct Warp {
    u32 exists, ready, waiting;   // lanes
    u32 seen[WARP][WARP];         // [lane][other]: the other's clock up to which the lane knows its accesses
};

static Launch* launch;
static Thread threads[MAX_THREADS];
static Warp warps[MAX_THREADS / WARP];
static Thread* current;
static Context scheduler;
static Stacks stacks;
static u32 n_threads, n_warps, n_exited, n_at_barrier, n_true;
static bool is_abandoned;
static u32 n_atomics;                       // since the thread that runs was resumed
const u32 MANY_ATOMICS = 1u << 24;

static u32 first_segment;                   // of this launch
static std::vector<Segment> segments;       // from it on
static u32 run, epoch;                      // of the block that runs
static std::vector<u32> block_of_run;       // in linear order
static std::unordered_map<Address, std::vector<Release>> releases;
static std::vector<Acquire> acquires;       // of the block that runs

static Address image_begin, image_end;      // of this library in memory

static inline Segment segment_now(const Thread& thread) { return {run, epoch, thread.clock, thread.number}; }

// Leaves the kernel for good; the launch ends.
[[noreturn]] static void abandon() {
    is_abandoned = true;
    change(current->context, scheduler);
    __builtin_unreachable();
}

// Keeps a finding, or counts it where the same was found at that place before.
static void report(Finding finding) {
    finding.block = block_of_run[run];
    for (u32 i = 0; i < launch->n_findings; ++i) {
        Finding& known = launch->findings[i];
        if (known.kind == finding.kind && known.place == finding.place && known.line == finding.line) {
            ++known.repeats;
            return;
        }
    }
    if (launch->n_findings < MAX_FINDINGS) launch->findings[launch->n_findings++] = finding;
}

static Finding finding_at(Kind kind, const Thread& thread) {
    Finding finding = {};
    finding.kind = kind;
    finding.thread = finding.other_thread = thread.number;
    finding.file = thread.site.file;
    finding.line = thread.site.line;
    return finding;
}

static void open_segment(Thread& thread) {
    if (first_segment + segments.size() >= N_SEGMENTS) {
        report(finding_at(TOO_MUCH, thread));
        is_abandoned = true;
        return;
    }
    thread.segment = first_segment + (u32)segments.size();
    segments.push_back(segment_now(thread));
}
