// No rule: the bands are read from arrays.
#pragma once
struct Bands {
    u64 unused;
};
