// CUDA C++ for the compiler of the host: every kernel is compiled behind this text, inside a namespace of its own.
//
// Threads are fibers of the runtime (runtime.cpp). Memory accesses are seen because the compiler calls a function
// before each (-fsanitize=thread), which the runtime supplies.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#define FEMTILE_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define FEMTILE_SHARED static __attribute__((section("femtile_shared"), used))
#define FEMTILE_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(emulator_dynamic_shared())

struct EmulatorIndex {
    unsigned x, y, z;
};

extern "C" {
EmulatorIndex emulator_thread_idx();
EmulatorIndex emulator_block_idx();
EmulatorIndex emulator_block_dim();
EmulatorIndex emulator_grid_dim();
void* emulator_dynamic_shared();
void emulator_sync_block();
int emulator_sync_block_count(int value);
void emulator_sync_warp(unsigned mask);
unsigned long long emulator_shuffle(unsigned mask, unsigned long long value, int source);
unsigned emulator_ballot(unsigned mask, int value);
unsigned emulator_lane();
void emulator_fence();
void emulator_atomic(void* address, unsigned long size);
extern char __start_femtile_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_femtile_shared[] __attribute__((weak, visibility("hidden")));
}

#define threadIdx (emulator_thread_idx())
#define blockIdx (emulator_block_idx())
#define blockDim (emulator_block_dim())
#define gridDim (emulator_grid_dim())

inline void __syncthreads() { emulator_sync_block(); }
inline int __syncthreads_count(int value) { return emulator_sync_block_count(value != 0); }
inline int __syncthreads_or(int value) { return emulator_sync_block_count(value != 0) > 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulator_sync_warp(mask); }
inline void __threadfence() { emulator_fence(); }
inline unsigned __ballot_sync(unsigned mask, int value) { return emulator_ballot(mask, value != 0); }
inline int __any_sync(unsigned mask, int value) { return emulator_ballot(mask, value != 0) != 0; }
inline int __all_sync(unsigned mask, int value) { return emulator_ballot(mask, value != 0) == mask; }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz((unsigned)value); }
inline int __ffs(int value) { return __builtin_ffs(value); }

// The lane to read from, or this one where that would lie outside the segment of `width` lanes.
template <typename V>
__attribute__((no_sanitize("thread"))) inline V emulator_shuffled(unsigned mask, V value, int source) {
    unsigned long long bits = 0;
    static_assert(sizeof(V) <= sizeof(bits), "at most 8 bytes are shuffled");
    __builtin_memcpy(&bits, &value, sizeof(V));
    bits = emulator_shuffle(mask, bits, source);
    __builtin_memcpy(&value, &bits, sizeof(V));
    return value;
}

template <typename V>
inline V __shfl_sync(unsigned mask, V value, int source, int width = 32) {
    const int lane = (int)emulator_lane();
    return emulator_shuffled(mask, value, lane / width * width + source % width);
}

template <typename V>
inline V __shfl_down_sync(unsigned mask, V value, unsigned delta, int width = 32) {
    const int lane = (int)emulator_lane();
    return emulator_shuffled(mask, value, lane % width + (int)delta < width ? lane + (int)delta : lane);
}

template <typename V>
inline V __shfl_up_sync(unsigned mask, V value, unsigned delta, int width = 32) {
    const int lane = (int)emulator_lane();
    return emulator_shuffled(mask, value, lane % width >= (int)delta ? lane - (int)delta : lane);
}

template <typename V>
inline V __shfl_xor_sync(unsigned mask, V value, int bits, int width = 32) {
    const int lane = (int)emulator_lane(), other = lane ^ bits;
    return emulator_shuffled(mask, value, other / width == lane / width ? other : lane);
}

// What an atomic operation does to a word; fibers change places only where they wait, so it is indivisible.
template <typename V, typename F>
__attribute__((no_sanitize("thread"))) inline V emulator_atomically(V* address, F&& change) {
    emulator_atomic(address, sizeof(V));
    const V before = *address;
    *address = change(before);
    return before;
}

template <typename V, typename W>
inline V atomicAdd(V* address, W value) { return emulator_atomically(address, [=](V v) { return (V)(v + value); }); }
template <typename V, typename W>
inline V atomicMin(V* address, W value) { return emulator_atomically(address, [=](V v) { return (V)value < v ? (V)value : v; }); }
template <typename V, typename W>
inline V atomicMax(V* address, W value) { return emulator_atomically(address, [=](V v) { return v < (V)value ? (V)value : v; }); }
template <typename V, typename W>
inline V atomicExch(V* address, W value) { return emulator_atomically(address, [=](V) { return (V)value; }); }
template <typename V, typename W>
inline V atomicOr(V* address, W value) { return emulator_atomically(address, [=](V v) { return (V)(v | value); }); }
template <typename V, typename W, typename X>
inline V atomicCAS(V* address, W expected, X value) {
    return emulator_atomically(address, [=](V v) { return v == (V)expected ? (V)value : v; });
}

template <typename V>
inline V __ldg(const V* address) { return *address; }
template <typename V>
inline V min(V a, V b) { return b < a ? b : a; }
template <typename V>
inline V max(V a, V b) { return a < b ? b : a; }
inline double rsqrt(double value) { return 1.0 / std::sqrt(value); }

// How Rust spells the type of a parameter.
template <typename V>
struct EmulatorType { static std::string name() { return "struct"; } };
#define EMULATOR_TYPE(type) template <> struct EmulatorType<type> { static std::string name() { return #type; } };
EMULATOR_TYPE(double)
EMULATOR_TYPE(float)
EMULATOR_TYPE(int)
EMULATOR_TYPE(unsigned char)
EMULATOR_TYPE(unsigned short)
EMULATOR_TYPE(unsigned int)
EMULATOR_TYPE(unsigned long long)
template <typename V>
struct EmulatorType<V*> { static std::string name() { return EmulatorType<V>::name() + "*"; } };
template <typename V>
struct EmulatorType<const V*> { static std::string name() { return "const " + EmulatorType<V>::name() + "*"; } };

// `type:bytes;` for each parameter of a kernel.
template <typename... A>
std::string emulator_signature(void (*)(A...)) {
    std::string text;
    ((text += EmulatorType<A>::name() + ":" + std::to_string(sizeof(A)) + ";"), ...);
    return text;
}

template <typename... A, std::size_t... I>
__attribute__((no_sanitize("thread"))) void emulator_call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}

template <typename... A>
void emulator_run(void (*kernel)(A...), void** arguments) {
    emulator_call(kernel, arguments, std::index_sequence_for<A...>());
}

// What the runtime needs of one kernel, under names that it looks up.
#define EMULATOR_ENTRY(kernel)                                                                  \
    extern "C" void femtile_run_##kernel(void** arguments) { emulator_run(kernel, arguments); } \
    extern "C" const char* femtile_signature_##kernel() {                                       \
        static const std::string text = emulator_signature(kernel);                             \
        return text.c_str();                                                                    \
    }

extern "C" __attribute__((used)) inline char* emulator_shared_begin() { return __start_femtile_shared; }
extern "C" __attribute__((used)) inline char* emulator_shared_end() { return __stop_femtile_shared; }
