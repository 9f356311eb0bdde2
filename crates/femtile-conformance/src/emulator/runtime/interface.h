// What the host side and the runtime hand each other; `library.rs` has the same structures.
#pragma once
#include <cstdint>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uintptr_t Address;

// What a kernel did wrong.
enum Kind : u32 {
    OUT_OF_BOUNDS,       // an access to what belongs to no array
    UNWRITTEN,           // a read of what nobody has written
    MISALIGNED,          // an address that is no multiple of what its type asks for
    RACE_IN_BLOCK,       // two threads of a block, no barrier between them
    RACE_OF_BLOCKS,      // two blocks, nothing that orders them
    BARRIER_MISSED,      // some threads wait at a barrier that others never reach
    BARRIERS_DIFFER,     // threads of a block meet at different barriers
    WARP_MISSED,         // lanes of a mask that never arrive at a warp's operation
    OPERATIONS_DIFFER,   // lanes of a mask that arrive at different operations
    NOT_IN_MASK,         // a lane that calls an operation with a mask without it
    INACTIVE_LANE,       // a shuffle that takes the value of a lane outside the mask
    TRAP,                // __trap()
    WAITS_FOREVER,       // a thread that looks again and again for what no other can do meanwhile
    TOO_MUCH             // more than the emulator has numbers for
};

enum Access : u32 { READ, WRITE, ATOMIC };
enum Whereabouts : u32 { RUNNING, AT_BARRIER, AT_OPERATION, EXITED };

struct Finding {
    u32 kind;
    u32 thread, other_thread;  // in linear order; the other is the one it met, where there is one
    u32 access, other_access;
    u32 size;
    u32 line, other_line;
    u32 mask, missing;   // of a warp's operation; missing counts threads for barriers
    u32 other_whereabouts;
    u32 repeats;         // how often the same was found again
    u64 block, other_block;
    u64 address;
    u64 place;           // of the instruction, from the beginning of the library
    const char* file;
    const char* other_file;
};

const u32 MAX_FINDINGS = 16;

// One launch. Memory of the device: `bytes` bytes at `memory`; four bits that say which bytes of a word belong to
// an array and four that say which were written, a word of four bytes in each of `state`; who touched it last in `granules`.
struct Launch {
    void (*kernel)(void**);
    void** arguments;
    u32 grid[3], block[3];
    u32 shared_bytes;
    u32 n_findings;
    u64 seed;
    u8* memory;
    u64 bytes;
    u8* state;
    void* granules;
    u32 first_segment;  // of this launch; afterwards, of the next
    u32 unused;
    Finding findings[MAX_FINDINGS];
};
