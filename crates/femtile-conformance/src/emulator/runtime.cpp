// Runs kernels on the host: blocks one after another, the threads of a block as fibers, every access checked.
//
// A launch ends at the first rule that is broken, with a text that names it. The rules:
// - device memory is touched inside an allocation that has not been freed, and read only where it was written;
// - shared memory is read only where this block wrote it;
// - a barrier is reached by all threads of its block, a warp's collective by all lanes of its mask;
// - two threads of a block touch the same byte, one of them writing, only with a barrier between (a barrier of the
//   warp will do inside one), atomics among themselves excepted;
// - two blocks do so only if the first passed a fence and then an atomic after its access (in the same thread, or
//   in another after a barrier), and the second an atomic before its own.
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <link.h>
#include <sys/mman.h>

namespace {

const uint64_t ARENA = 1ull << 30;  // bytes of device memory, reserved and touched only where used
const uint64_t RED_ZONE = 256;      // bytes between allocations that belong to none
const uint32_t MAX_THREADS = 1024, WARP = 32;
const uint64_t STACK = 128 << 10;
const uint64_t DYNAMIC_SHARED = 256 << 10;

// The last access of one kind to a word of four bytes.
struct Access {
    uint32_t epoch = 0;       // of the block's barriers; never repeated
    uint32_t warp_epoch = 0;  // of the warp's barriers; never repeated
    uint32_t block = 0;
    uint16_t thread = 0;
    uint8_t bytes = 0;  // which of the four
    uint8_t kind = 0;   // ATOMIC, MANY
};
const uint8_t ATOMIC = 1, MANY = 2;  // MANY: other threads did the same in this epoch

struct Cell {
    Access write, read;
    uint8_t written = 0;  // bytes that hold a value
};

struct Range {
    uint64_t begin = 0, end = 0;
    bool has(uint64_t address) const { return begin <= address && address < end; }
};

enum State : uint8_t { READY, AT_BARRIER, AT_COLLECTIVE, DONE };

struct Fiber {
    void* stack_pointer = nullptr;
    State state = DONE;
    bool fenced = false;         // since its last atomic
    uint32_t atomic_epoch = 0;   // the block's epoch at its last atomic of this launch
    uint32_t mask = 0;           // of the collective it waits at
    int kind = 0, source = 0;
    uint64_t value = 0, result = 0;
};

// What a block has published to others: accesses before `epoch`, and those of `thread` in it.
struct Release {
    uint32_t epoch = 0;
    uint32_t thread = 0;
};

struct Index {
    unsigned x, y, z;
};

struct Machine {
    uint8_t* arena = nullptr;
    Cell* cells = nullptr;
    uint64_t next = RED_ZONE;
    std::map<uint64_t, std::pair<uint64_t, bool>> allocations;  // begin -> (bytes, live)
    uint8_t* stacks = nullptr;
    uint8_t* dynamic_shared = nullptr;
    std::vector<Cell> shared_cells, dynamic_cells;
    Range shared, dynamic, image;
    Fiber fibers[MAX_THREADS];
    uint32_t warp_epochs[MAX_THREADS / WARP];
    uint32_t n_threads = 0, current = 0, block = 0;
    uint32_t epoch = 1, launch_epoch = 1, warp_clock = 1;
    uint32_t block_atomic_epoch = 0;  // the first epoch in which a thread of this block did an atomic
    int barrier_count = 0, barrier_result = 0;
    std::vector<Release> releases;
    Index thread_idx{}, block_idx{}, block_dim{}, grid_dim{};
    void* scheduler = nullptr;
    bool running = false;  // a fiber, and not the host, executes
    void (*kernel)(void**) = nullptr;
    void** arguments = nullptr;
    std::string report;
    uint64_t last_begin = 0, last_end = 0;  // the allocation found last
};

Machine m;

extern "C" void emulator_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch, .-emulator_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, %function
emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size emulator_switch, .-emulator_switch
)");
#else
#error "the emulator knows how to switch fibers on x86-64 and 64-bit Arm only"
#endif

void leave() { emulator_switch(&m.fibers[m.current].stack_pointer, m.scheduler); }

// Ends the launch with a text; the fiber never runs again.
[[noreturn]] void fail(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char place[160];
    snprintf(place, sizeof place, "block (%u, %u, %u), thread (%u, %u, %u): ", m.block_idx.x, m.block_idx.y,
             m.block_idx.z, m.thread_idx.x, m.thread_idx.y, m.thread_idx.z);
    m.report = std::string(place) + text;
    leave();
    abort();
}

void fiber_main() {
    m.kernel(m.arguments);
    m.fibers[m.current].state = DONE;
    leave();
    abort();
}

void start_fiber(uint32_t thread) {
    uint8_t* top = m.stacks + (thread + 1) * STACK;
    void** stack = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
#if defined(__x86_64__)
    // At its first instruction a function finds the stack 8 bytes off a multiple of 16.
    *--stack = nullptr;
    *--stack = reinterpret_cast<void*>(fiber_main);
    for (int i = 0; i < 6; ++i) *--stack = nullptr;
#else
    stack -= 20;
    std::fill(stack, stack + 20, nullptr);
    stack[11] = reinterpret_cast<void*>(fiber_main);
#endif
    m.fibers[thread] = Fiber();
    m.fibers[thread].stack_pointer = stack;
    m.fibers[thread].state = READY;
}

Index index_of(uint64_t linear, Index extent) {
    return {unsigned(linear % extent.x), unsigned(linear / extent.x % extent.y),
            unsigned(linear / extent.x / extent.y)};
}

void resume(uint32_t thread) {
    m.current = thread;
    m.thread_idx = index_of(thread, m.block_dim);
    m.running = true;
    emulator_switch(&m.scheduler, m.fibers[thread].stack_pointer);
    m.running = false;
}

// ---- memory -------------------------------------------------------------------------------------------------------

// The allocation that holds an address, as text.
std::string name_of(uint64_t address) {
    char text[160];
    const uint64_t offset = address - reinterpret_cast<uint64_t>(m.arena);
    if (m.shared.has(address)) {
        snprintf(text, sizeof text, "byte %llu of static shared memory", (unsigned long long)(address - m.shared.begin));
        return text;
    }
    if (m.dynamic.has(address)) {
        snprintf(text, sizeof text, "byte %llu of dynamic shared memory", (unsigned long long)(address - m.dynamic.begin));
        return text;
    }
    if (address < 4096) return "a null pointer";
    auto after = m.allocations.upper_bound(offset);
    if (offset >= ARENA || after == m.allocations.begin()) return "memory that is no buffer";
    auto [begin, extent] = *--after;
    snprintf(text, sizeof text, "byte %llu of a buffer of %llu bytes%s", (unsigned long long)(offset - begin),
             (unsigned long long)extent.first, extent.second ? "" : " that was freed");
    return text;
}

bool in_live_buffer(uint64_t offset, uint64_t size) {
    if (m.last_begin <= offset && offset + size <= m.last_end) return true;
    auto after = m.allocations.upper_bound(offset);
    if (after == m.allocations.begin()) return false;
    auto [begin, extent] = *--after;
    if (!extent.second || offset + size > begin + extent.first) return false;
    m.last_begin = begin;
    m.last_end = begin + extent.first;
    return true;
}

// Whether an earlier access is known to be over before the current one.
bool is_ordered(const Access& before) {
    if (before.epoch < m.launch_epoch) return true;
    const Fiber& fiber = m.fibers[m.current];
    if (before.block == m.block) {
        if (before.thread == m.current || before.epoch != m.epoch) return true;
        const bool same_warp = before.thread / WARP == m.current / WARP;
        return same_warp && before.warp_epoch != m.warp_epochs[m.current / WARP];
    }
    const Release& release = m.releases[before.block];
    const bool released =
        before.epoch < release.epoch || (before.epoch == release.epoch && before.thread == release.thread);
    const bool acquired = fiber.atomic_epoch != 0 || (m.block_atomic_epoch != 0 && m.block_atomic_epoch < m.epoch);
    return released && acquired;
}

void note(Access& access, uint8_t bytes, uint8_t kind) {
    const bool same_epoch = access.epoch == m.epoch && access.block == m.block;
    const bool same_thread = same_epoch && access.thread == m.current;
    const bool same_time = same_epoch && access.warp_epoch == m.warp_epochs[m.current / WARP];
    uint8_t many = same_epoch && (!same_thread || (access.kind & MANY)) ? MANY : 0;
    const uint8_t old = (same_thread && same_time) || many ? access.bytes : 0;
    access = {m.epoch, m.warp_epochs[m.current / WARP], m.block, uint16_t(m.current), uint8_t(old | bytes),
              uint8_t(kind | many)};
}

// A race with an earlier access, if there is one. MANY readers of one epoch stand for another thread.
void check_race(const Access& before, const char* what, uint8_t bytes, bool atomic, const char* doing, uint64_t address) {
    if (before.epoch == 0 || !(before.bytes & bytes)) return;
    if (atomic && (before.kind & ATOMIC)) return;
    bool ordered = is_ordered(before);
    if (ordered && (before.kind & MANY) && before.block == m.block && before.epoch == m.epoch &&
        before.thread == m.current) {
        ordered = false;
    }
    if (ordered) return;
    if (before.block == m.block) {
        fail("race: %s %s, which thread %u of this block %s with no barrier between", doing, name_of(address).c_str(),
             unsigned(before.thread), what);
    }
    fail("race: %s %s, which block %u %s with no fence and atomic between", doing, name_of(address).c_str(),
         before.block, what);
}

void touch(Cell& cell, uint8_t bytes, bool write, bool atomic, uint64_t address) {
    const char* doing = atomic ? "atomic on" : write ? "writes" : "reads";
    if ((!write || atomic) && (cell.written & bytes) != bytes) {
        fail("%s %s, which was never written", doing, name_of(address).c_str());
    }
    check_race(cell.write, "wrote", bytes, atomic, doing, address);
    if (write) {
        check_race(cell.read, "read", bytes, atomic, doing, address);
        note(cell.write, bytes, atomic ? ATOMIC : 0);
        cell.written |= bytes;
    } else {
        note(cell.read, bytes, 0);
    }
}

void access(const void* pointer, uint64_t size, bool write, bool atomic) {
    if (!m.running) return;
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    const uint64_t offset = address - reinterpret_cast<uint64_t>(m.arena);
    Cell* cells;
    uint64_t start;
    if (offset < ARENA) {
        if (!in_live_buffer(offset, size)) {
            fail("out of bounds: %s %s", write ? "writes" : "reads", name_of(address).c_str());
        }
        cells = m.cells;
        start = offset;
    } else if (address - reinterpret_cast<uint64_t>(m.stacks) < MAX_THREADS * STACK) {
        return;
    } else if (m.shared.has(address)) {
        cells = m.shared_cells.data();
        start = address - m.shared.begin;
    } else if (m.dynamic.has(address)) {
        cells = m.dynamic_cells.data();
        start = address - m.dynamic.begin;
    } else if (m.image.has(address) && !write) {
        return;
    } else {
        fail("out of bounds: %s %s", write ? "writes" : "reads", name_of(address).c_str());
    }
    for (uint64_t byte = start; byte < start + size;) {
        const uint64_t n = std::min<uint64_t>(4 - byte % 4, start + size - byte);
        touch(cells[byte / 4], uint8_t(((1u << n) - 1) << byte % 4), write, atomic, address + byte - start);
        byte += n;
    }
}

// ---- barriers and collectives -------------------------------------------------------------------------------------

void advance_epoch() { m.epoch += 1; }

// Lets all threads go that wait at a barrier, if all have come; otherwise says who has not.
void open_barrier() {
    for (uint32_t i = 0; i < m.n_threads; ++i) {
        if (m.fibers[i].state == AT_BARRIER) continue;
        uint32_t waiting = 0;
        while (m.fibers[waiting].state != AT_BARRIER) ++waiting;
        char text[200];
        snprintf(text, sizeof text, "barrier: thread %u of block %u waits at a barrier that thread %u, which %s, does not reach",
                 waiting, m.block, i, m.fibers[i].state == DONE ? "has ended" : "waits elsewhere");
        m.report = text;
        return;
    }
    advance_epoch();
    m.barrier_result = m.barrier_count;
    m.barrier_count = 0;
    for (uint32_t i = 0; i < m.n_threads; ++i) m.fibers[i].state = READY;
}

enum Kind { SYNC = 1, SHUFFLE, BALLOT };

// Completes the collective that a thread waits at when all lanes of its mask have come.
void complete_collective(uint32_t thread) {
    const uint32_t first = thread / WARP * WARP, mask = m.fibers[thread].mask;
    const int kind = m.fibers[thread].kind;
    uint64_t ballot = 0;
    for (uint32_t lane = 0; lane < WARP; ++lane) {
        if (!(mask >> lane & 1) || first + lane >= m.n_threads) continue;
        const Fiber& other = m.fibers[first + lane];
        if (other.state != AT_COLLECTIVE || other.kind != kind || other.mask != mask) return;
        if (other.value) ballot |= 1ull << lane;
    }
    for (uint32_t lane = 0; lane < WARP; ++lane) {
        if (!(mask >> lane & 1) || first + lane >= m.n_threads) continue;
        Fiber& fiber = m.fibers[first + lane];
        fiber.result = ballot;
        if (kind == SHUFFLE) {
            const uint32_t source = uint32_t(fiber.source);
            if (source >= WARP || !(mask >> source & 1) || first + source >= m.n_threads) {
                m.current = first + lane;
                m.thread_idx = index_of(m.current, m.block_dim);
                fail("shuffle: reads lane %d, which does not take part (mask %08x)", fiber.source, mask);
            }
            fiber.result = m.fibers[first + source].value;
        }
    }
    if (kind == SYNC) m.warp_epochs[thread / WARP] = ++m.warp_clock;
    for (uint32_t lane = 0; lane < WARP; ++lane) {
        if ((mask >> lane & 1) && first + lane < m.n_threads) m.fibers[first + lane].state = READY;
    }
}

uint64_t collective(uint32_t mask, int kind, uint64_t value, int source) {
    Fiber& fiber = m.fibers[m.current];
    if (!(mask >> m.current % WARP & 1)) fail("collective: this lane is not in its mask %08x", mask);
    fiber.mask = mask;
    fiber.kind = kind;
    fiber.value = value;
    fiber.source = source;
    fiber.state = AT_COLLECTIVE;
    complete_collective(m.current);
    while (m.fibers[m.current].state != READY) leave();
    return m.fibers[m.current].result;
}

void report_stuck() {
    for (uint32_t i = 0; i < m.n_threads && m.report.empty(); ++i) {
        if (m.fibers[i].state != AT_COLLECTIVE) continue;
        char text[200];
        snprintf(text, sizeof text, "collective: thread %u of block %u waits for lanes of its mask %08x that do not come",
                 i, m.block, m.fibers[i].mask);
        m.report = text;
    }
}

void run_block(uint64_t block) {
    m.block = uint32_t(block);
    m.block_idx = index_of(block, m.grid_dim);
    advance_epoch();
    m.block_atomic_epoch = 0;
    std::fill(m.shared_cells.begin(), m.shared_cells.end(), Cell());
    std::fill(m.dynamic_cells.begin(), m.dynamic_cells.end(), Cell());
    for (uint32_t& epoch : m.warp_epochs) epoch = ++m.warp_clock;
    for (uint32_t i = 0; i < m.n_threads; ++i) start_fiber(i);
    for (;;) {
        bool ran = false, all_done = true, at_barrier = false;
        for (uint32_t i = 0; i < m.n_threads; ++i) {
            if (m.fibers[i].state == READY) {
                resume(i);
                if (!m.report.empty()) return;
                ran = true;
            }
        }
        for (uint32_t i = 0; i < m.n_threads; ++i) {
            all_done &= m.fibers[i].state == DONE;
            at_barrier |= m.fibers[i].state == AT_BARRIER;
            ran |= m.fibers[i].state == READY;
        }
        if (all_done) return;
        if (ran) continue;
        report_stuck();
        if (m.report.empty() && at_barrier) open_barrier();
        if (!m.report.empty()) return;
    }
}

void prepare() {
    if (m.arena) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    auto map = [&](uint64_t bytes) { return static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)); };
    m.arena = map(ARENA);
    m.cells = reinterpret_cast<Cell*>(map(ARENA / 4 * sizeof(Cell)));
    m.stacks = map(MAX_THREADS * STACK);
    m.dynamic_shared = map(DYNAMIC_SHARED);
}

// The part of the program's file that holds a function, for constants that kernels read.
Range image_of(void* function) {
    struct Search {
        uint64_t address;
        Range found;
    } search{reinterpret_cast<uint64_t>(function), {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            auto* search = static_cast<Search*>(data);
            Range whole{~0ull, 0};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
                const uint64_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                whole.begin = std::min(whole.begin, begin);
                whole.end = std::max<uint64_t>(whole.end, begin + info->dlpi_phdr[i].p_memsz);
            }
            if (whole.has(search->address)) search->found = whole;
            return 0;
        },
        &search);
    return search.found;
}

}  // namespace

extern "C" {

// Memory of `bytes` bytes with undefined contents; 0 where there is no room.
uint64_t emulator_allocate(uint64_t bytes) {
    prepare();
    const uint64_t begin = (m.next + 255) / 256 * 256, end = begin + bytes + RED_ZONE;
    if (end > ARENA) return 0;
    m.next = end;
    m.allocations[begin] = {bytes, true};
    std::fill(m.cells + begin / 4, m.cells + begin / 4 + (bytes + 3) / 4, Cell());
    return reinterpret_cast<uint64_t>(m.arena) + begin;
}

// Memory is not used again before all of it is free: so that what reads freed memory shows.
void emulator_free(uint64_t address) {
    m.allocations[address - reinterpret_cast<uint64_t>(m.arena)].second = false;
    m.last_begin = m.last_end = 0;
    for (const auto& allocation : m.allocations) {
        if (allocation.second.second) return;
    }
    m.allocations.clear();
    m.next = RED_ZONE;
}

// Whether a copy between host and device stays in one buffer.
int emulator_holds(uint64_t address, uint64_t bytes) {
    const uint64_t offset = address - reinterpret_cast<uint64_t>(m.arena);
    return offset < ARENA && in_live_buffer(offset, bytes);
}

void emulator_written(uint64_t address, uint64_t bytes) {
    const uint64_t offset = address - reinterpret_cast<uint64_t>(m.arena);
    for (uint64_t byte = offset; byte < offset + bytes; ++byte) m.cells[byte / 4].written |= uint8_t(1u << byte % 4);
}

// Runs a kernel; returns what rule was broken, or null.
const char* emulator_launch(void (*kernel)(void**), void** arguments, const uint32_t* grid, const uint32_t* block,
                            uint32_t dynamic_bytes, char* shared_begin, char* shared_end, uint64_t seed) {
    prepare();
    m.grid_dim = {grid[0], grid[1], grid[2]};
    m.block_dim = {block[0], block[1], block[2]};
    m.n_threads = block[0] * block[1] * block[2];
    if (m.n_threads == 0 || m.n_threads > MAX_THREADS) return "a block has 1 to 1024 threads";
    if (dynamic_bytes > DYNAMIC_SHARED) return "too much dynamic shared memory";
    m.kernel = kernel;
    m.arguments = arguments;
    m.report.clear();
    m.shared = {reinterpret_cast<uint64_t>(shared_begin), reinterpret_cast<uint64_t>(shared_end)};
    m.dynamic.begin = reinterpret_cast<uint64_t>(m.dynamic_shared);
    m.dynamic.end = m.dynamic.begin + dynamic_bytes;
    m.shared_cells.assign((m.shared.end - m.shared.begin + 7) / 4, Cell());
    m.dynamic_cells.assign((dynamic_bytes + 7) / 4, Cell());
    m.image = image_of(reinterpret_cast<void*>(kernel));
    advance_epoch();
    m.launch_epoch = m.epoch + 1;
    std::vector<uint64_t> order(uint64_t(grid[0]) * grid[1] * grid[2]);
    for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    m.releases.assign(order.size(), Release());
    for (uint64_t block : order) {
        run_block(block);
        if (!m.report.empty()) return m.report.c_str();
    }
    return nullptr;
}

Index emulator_thread_idx() { return m.thread_idx; }
Index emulator_block_idx() { return m.block_idx; }
Index emulator_block_dim() { return m.block_dim; }
Index emulator_grid_dim() { return m.grid_dim; }
void* emulator_dynamic_shared() { return m.dynamic_shared; }
unsigned emulator_lane() { return m.current % WARP; }

void emulator_sync_block() {
    m.fibers[m.current].state = AT_BARRIER;
    leave();
}

int emulator_sync_block_count(int value) {
    m.barrier_count += value;
    m.fibers[m.current].state = AT_BARRIER;
    leave();
    return m.barrier_result;
}

void emulator_sync_warp(unsigned mask) { collective(mask, SYNC, 0, 0); }
uint64_t emulator_shuffle(unsigned mask, uint64_t value, int source) { return collective(mask, SHUFFLE, value, source); }
unsigned emulator_ballot(unsigned mask, int value) { return unsigned(collective(mask, BALLOT, uint64_t(value), 0)); }

void emulator_fence() { m.fibers[m.current].fenced = true; }

void emulator_atomic(void* address, unsigned long size) {
    Fiber& fiber = m.fibers[m.current];
    const uint64_t offset = reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(m.arena);
    if (offset < ARENA) {
        if (fiber.fenced) {
            m.releases[m.block] = {m.epoch, m.current};
            fiber.fenced = false;
        }
        fiber.atomic_epoch = m.epoch;
        if (m.block_atomic_epoch == 0) m.block_atomic_epoch = m.epoch;
    }
    access(address, size, true, true);
}

#define EMULATOR_ACCESS(size)                                                             \
    void __tsan_read##size(void* address) { access(address, size, false, false); }        \
    void __tsan_write##size(void* address) { access(address, size, true, false); }        \
    void __tsan_unaligned_read##size(void* address) { access(address, size, false, false); } \
    void __tsan_unaligned_write##size(void* address) { access(address, size, true, false); }
EMULATOR_ACCESS(1)
EMULATOR_ACCESS(2)
EMULATOR_ACCESS(4)
EMULATOR_ACCESS(8)
EMULATOR_ACCESS(16)

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, unsigned long size) { access(address, size, false, false); }
void __tsan_write_range(void* address, unsigned long size) { access(address, size, true, false); }

}  // extern "C"
