// The runtime of emulated kernels: runs the blocks of a launch, and hears of every access through the calls that
// `-fsanitize=thread` puts before it. It is linked with one program; a launch at a time uses it.
#include <link.h>
#include <pthread.h>

#include <cstdlib>

#include "atomics.h"
#include "interface.h"
#include "meeting.h"
#include "shadow.h"

struct Index {
    u32 x, y, z;
};
// Kernels see these as constants.
HIDDEN Index threadIdx, blockIdx, blockDim, gridDim;
HIDDEN u8* femtile_dynamic_shared;

extern "C" u8 femtile_shared_begin[] asm("__start_femtile_shared") HIDDEN;
extern "C" u8 femtile_shared_end[] asm("__stop_femtile_shared") HIDDEN;

static const u64 DYNAMIC_BYTES = 232 << 10, GAP_WORDS = 16;
static const u64 GAP_WORD = 0x7fe6d1e09a6e5c3bull;
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;
static u8* fixed_arrays;   // what of static shared memory belongs to arrays, in the form of Space::state

static void make_space(Space& space, u8* base, u64 bytes) {
    space.base = reinterpret_cast<Address>(base);
    space.bytes = bytes;
    const u64 n_words = bytes / 4 + 4;  // an access may begin in the last one
    space.state = static_cast<u8*>(calloc(n_words, 1));
    space.granules = static_cast<Granule*>(aligned_alloc(alignof(Granule), n_words * sizeof(Granule)));
}

// Finds the gaps between static arrays.
static void find_arrays() {
    const u64 n_words = (fixed_shared.bytes + 3) / 4;
    fixed_arrays = static_cast<u8*>(malloc(n_words));
    memset(fixed_arrays, 15, n_words);
    for (u64 at = 0; at + GAP_WORDS * 8 <= fixed_shared.bytes; at += 16) {
        u64 words[3];
        memcpy(words, femtile_shared_begin + at, sizeof(words));
        if (words[0] == GAP_WORD && words[1] == (GAP_WORD ^ 1) && words[2] == (GAP_WORD ^ 2)) {
            memset(fixed_arrays + at / 4, 0, GAP_WORDS * 2);
        }
    }
}

// Finds where this library lies in memory, among all that are loaded.
static int find_image(dl_phdr_info* info, size_t, void*) {
    const Address here = reinterpret_cast<Address>(&in_use);
    Address end = info->dlpi_addr;
    bool is_here = false;
    for (u32 i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        const Address from = info->dlpi_addr + part.p_vaddr, to = from + part.p_memsz;
        if (part.p_type != PT_LOAD) continue;
        is_here = is_here || (here >= from && here < to);
        end = to > end ? to : end;
    }
    if (!is_here) return 0;
    image_begin = info->dlpi_addr;
    image_end = end;
    return 1;
}

static bool prepare() {
    if (!stacks.reserve()) return false;
    if (fixed_arrays != nullptr) return true;
    make_space(fixed_shared, femtile_shared_begin, (u64)(femtile_shared_end - femtile_shared_begin));
    void* dynamic = mmap(nullptr, DYNAMIC_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dynamic == MAP_FAILED) return false;
    make_space(dynamic_shared, static_cast<u8*>(dynamic), DYNAMIC_BYTES);
    femtile_dynamic_shared = static_cast<u8*>(dynamic);
    find_arrays();
    dl_iterate_phdr(find_image, nullptr);
    return true;
}

__attribute__((destructor)) static void give_back() {
    if (fixed_arrays == nullptr) return;
    munmap(femtile_dynamic_shared, DYNAMIC_BYTES);
    for (Space* space : {&fixed_shared, &dynamic_shared}) {
        free(space->state);
        free(space->granules);
    }
    free(fixed_arrays);
}

static void run_thread() {
    launch->kernel(launch->arguments);
    Thread& thread = *current;
    thread.whereabouts = EXITED;
    ++n_exited;
    stacks.give_back(thread.stack);
    change(thread.context, scheduler);
    __builtin_unreachable();
}

static void resume(Thread& thread) {
    current = &thread;
    n_atomics = 0;
    threadIdx = {thread.index[0], thread.index[1], thread.index[2]};
    if (!thread.has_stack) {
        thread.has_stack = true;
        thread.stack = stacks.take();
        thread.context.prepare(stacks.top(thread.stack), run_thread);
    }
    change(scheduler, thread.context);
}

static u64 random_state;
static u32 random_below(u32 n) {
    u64 z = random_state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (u32)((z ^ z >> 31) % n);
}

static void draw_order() {
    const u32* grid = launch->grid;
    block_of_run.resize((u64)grid[0] * grid[1] * grid[2]);
    for (u32 i = 0; i < block_of_run.size(); ++i) block_of_run[i] = i;
    for (u32 i = (u32)block_of_run.size(); i > 1; --i) {
        const u32 j = random_below(i), moved = block_of_run[i - 1];
        block_of_run[i - 1] = block_of_run[j];
        block_of_run[j] = moved;
    }
}

static void begin_block(u32 block) {
    const u32* grid = launch->grid;
    blockIdx = {block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]};
    epoch = n_exited = n_at_barrier = 0;
    acquires.clear();
    stacks.give_all_back();
    fixed_shared.first = dynamic_shared.first = first_segment + (u32)segments.size();
    memcpy(fixed_shared.state, fixed_arrays, (fixed_shared.bytes + 3) / 4);
    const u32 bytes = launch->shared_bytes;
    memset(dynamic_shared.state, 15, bytes / 4);
    if (bytes % 4 != 0) dynamic_shared.state[bytes / 4] = (u8)((1u << bytes % 4) - 1);
    for (u32 i = 0; i < n_warps; ++i) {
        Warp& warp = warps[i];
        warp.exists = n_threads - i * WARP >= WARP ? ~0u : (1u << (n_threads - i * WARP)) - 1;
        warp.ready = warp.exists;
        warp.waiting = 0;
        memset(warp.seen, 0, sizeof(warp.seen));
    }
    for (u32 i = 0; i < n_threads; ++i) {
        Thread& thread = threads[i];
        thread.has_stack = thread.has_fenced = false;
        thread.whereabouts = RUNNING;
        thread.clock = 1;
        thread.site = {};
        thread.copy_group = 0;
        thread.copies.clear();
        open_segment(thread);
    }
}

static void run_block(u32 block) {
    begin_block(block);
    while (!is_abandoned) {
        for (u32 i = 0; i < n_warps; ++i) {
            Warp& warp = warps[i];
            while (warp.ready != 0 && !is_abandoned) {
                const u32 lane = (u32)__builtin_ctz(warp.ready);
                warp.ready &= warp.ready - 1;
                resume(threads[i * WARP + lane]);
            }
        }
        if (is_abandoned || n_exited == n_threads) return;
        if (n_at_barrier < n_threads) {
            report_deadlock();
            is_abandoned = true;
            return;
        }
        open_barrier();
    }
}

static void begin_launch() {
    first_segment = launch->first_segment;
    segments.clear();
    releases.clear();
    is_abandoned = false;
    random_state = launch->seed;
    const u32 *grid = launch->grid, *block = launch->block;
    blockDim = {block[0], block[1], block[2]};
    gridDim = {grid[0], grid[1], grid[2]};
    n_threads = block[0] * block[1] * block[2];
    n_warps = (n_threads + WARP - 1) / WARP;
    for (u32 i = 0; i < n_threads; ++i) {
        Thread& thread = threads[i];
        thread.index[0] = i % block[0];
        thread.index[1] = i / block[0] % block[1];
        thread.index[2] = i / block[0] / block[1];
        thread.number = i;
        thread.lane = i % WARP;
        thread.warp = i / WARP;
    }
    device = {reinterpret_cast<Address>(launch->memory), launch->bytes - 16, launch->state,
              static_cast<Granule*>(launch->granules), first_segment};
    // Another device may have left higher numbers here.
    memset(fixed_shared.granules, 0, (fixed_shared.bytes + 3) / 4 * sizeof(Granule));
    memset(dynamic_shared.granules, 0, (launch->shared_bytes + 3) / 4 * sizeof(Granule));
    memset(dynamic_shared.state, 0, (dynamic_shared.bytes + 3) / 4);
    draw_order();
}

// Runs all blocks one after another; false where there is no memory for stacks.
extern "C" __attribute__((visibility("default"))) bool femtile_launch(Launch* asked) {
    pthread_mutex_lock(&in_use);
    const bool is_ready = prepare();
    if (is_ready) {
        launch = asked;
        begin_launch();
        for (run = 0; run < block_of_run.size() && !is_abandoned; ++run) run_block(block_of_run[run]);
        launch->first_segment = first_segment + (u32)segments.size();
    }
    pthread_mutex_unlock(&in_use);
    return is_ready;
}

// Where shared memory lies: beginning and bytes, static then dynamic.
extern "C" __attribute__((visibility("default"))) void femtile_shared_memory(u64 ranges[4]) {
    ranges[0] = reinterpret_cast<Address>(femtile_shared_begin);
    ranges[1] = (u64)(femtile_shared_end - femtile_shared_begin);
    ranges[2] = dynamic_shared.base;
    ranges[3] = dynamic_shared.bytes;
}

extern "C" __attribute__((visibility("default"))) u64 femtile_image() {
    return image_begin;
}

// What the compiler calls where a pointer is not aligned as its type must be (`-fsanitize=alignment`).
struct Misalignment {
    const char* file;
    u32 line, column;
};
extern "C" HIDDEN void __ubsan_handle_type_mismatch_v1(Misalignment* where, Address address) {
    Finding finding = {};
    finding.kind = MISALIGNED;
    finding.thread = finding.other_thread = current->number;
    finding.address = address;
    finding.file = where->file;
    finding.line = where->line;
    report(finding);
    abandon();
}

// What the compiler calls before every access.
#define WATCH(name) extern "C" HIDDEN void __tsan_##name
WATCH(init)() {}
WATCH(func_entry)(void*) {}
WATCH(func_exit)() {}
WATCH(read1)(void* at) { check<1, READ>(at, PLACE); }
WATCH(read2)(void* at) { check<2, READ>(at, PLACE); }
WATCH(read4)(void* at) { check<4, READ>(at, PLACE); }
WATCH(read8)(void* at) { check<8, READ>(at, PLACE); }
WATCH(read16)(void* at) { check<16, READ>(at, PLACE); }
WATCH(write1)(void* at) { check<1, WRITE>(at, PLACE); }
WATCH(write2)(void* at) { check<2, WRITE>(at, PLACE); }
WATCH(write4)(void* at) { check<4, WRITE>(at, PLACE); }
WATCH(write8)(void* at) { check<8, WRITE>(at, PLACE); }
WATCH(write16)(void* at) { check<16, WRITE>(at, PLACE); }
WATCH(unaligned_read2)(void* at) { check_range<READ>(at, 2, PLACE); }
WATCH(unaligned_read4)(void* at) { check_range<READ>(at, 4, PLACE); }
WATCH(unaligned_read8)(void* at) { check_range<READ>(at, 8, PLACE); }
WATCH(unaligned_read16)(void* at) { check_range<READ>(at, 16, PLACE); }
WATCH(unaligned_write2)(void* at) { check_range<WRITE>(at, 2, PLACE); }
WATCH(unaligned_write4)(void* at) { check_range<WRITE>(at, 4, PLACE); }
WATCH(unaligned_write8)(void* at) { check_range<WRITE>(at, 8, PLACE); }
WATCH(unaligned_write16)(void* at) { check_range<WRITE>(at, 16, PLACE); }
WATCH(read_range)(void* at, u64 bytes) { check_range<READ>(at, bytes, PLACE); }
WATCH(write_range)(void* at, u64 bytes) { check_range<WRITE>(at, bytes, PLACE); }
WATCH(vptr_read)(void**) {}
WATCH(vptr_update)(void**, void*) {}
extern "C" HIDDEN void* __tsan_memcpy(void* to, const void* from, u64 bytes) {
    check_range<READ>(from, bytes, PLACE);
    check_range<WRITE>(to, bytes, PLACE);
    return memcpy(to, from, bytes);
}
extern "C" HIDDEN void* __tsan_memmove(void* to, const void* from, u64 bytes) {
    check_range<READ>(from, bytes, PLACE);
    check_range<WRITE>(to, bytes, PLACE);
    return memmove(to, from, bytes);
}
extern "C" HIDDEN void* __tsan_memset(void* to, int value, u64 bytes) {
    check_range<WRITE>(to, bytes, PLACE);
    return memset(to, value, bytes);
}
