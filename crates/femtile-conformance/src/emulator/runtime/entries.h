// How the host reaches a kernel: one function that takes the addresses of its arguments, and its signature.
//
// A signature is one line a parameter: size in bytes, a space, the type as Femtile's host code spells it.
#pragma once

// For functions that work on memory of the host.
#define FEMTILE_UNWATCHED __attribute__((no_sanitize("thread")))

template <typename V>
struct FemtileType {
    static constexpr const char* prefix = "";
    static constexpr const char* name = "struct";
    static constexpr const char* suffix = "";
};
#define FEMTILE_TYPE(V)                              \
    template <>                                      \
    struct FemtileType<V> {                          \
        static constexpr const char* prefix = "";    \
        static constexpr const char* name = #V;      \
        static constexpr const char* suffix = "";    \
    };
FEMTILE_TYPE(bool)
FEMTILE_TYPE(char)
FEMTILE_TYPE(unsigned char)
FEMTILE_TYPE(short)
FEMTILE_TYPE(unsigned short)
FEMTILE_TYPE(int)
FEMTILE_TYPE(unsigned int)
FEMTILE_TYPE(long)
FEMTILE_TYPE(unsigned long)
FEMTILE_TYPE(long long)
FEMTILE_TYPE(unsigned long long)
FEMTILE_TYPE(float)
FEMTILE_TYPE(double)
FEMTILE_TYPE(void)
template <typename V>
struct FemtileType<V*> {
    static constexpr const char* prefix = "";
    static constexpr const char* name = FemtileType<V>::name;
    static constexpr const char* suffix = "*";
};
template <typename V>
struct FemtileType<const V*> {
    static constexpr const char* prefix = "const ";
    static constexpr const char* name = FemtileType<V>::name;
    static constexpr const char* suffix = "*";
};

struct FemtileText {
    char* at;
    FEMTILE_UNWATCHED void put(const char* text) {
        while (*text != 0) *at++ = *text++;
    }
    FEMTILE_UNWATCHED void put_number(unsigned long n) {
        if (n >= 10) put_number(n / 10);
        *at++ = (char)('0' + n % 10);
    }
    template <typename V>
    FEMTILE_UNWATCHED void put_type() {
        put_number(sizeof(V));
        put(" ");
        put(FemtileType<V>::prefix);
        put(FemtileType<V>::name);
        put(FemtileType<V>::suffix);
        put("\n");
    }
};

template <unsigned... I>
struct FemtileIndices {};
template <unsigned N, unsigned... I>
struct FemtileCount : FemtileCount<N - 1, N - 1, I...> {};
template <unsigned... I>
struct FemtileCount<0, I...> {
    typedef FemtileIndices<I...> Indices;
};

template <typename... A, unsigned... I>
FEMTILE_UNWATCHED void femtile_call(void (*kernel)(A...), void** arguments, FemtileIndices<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}
template <typename... A>
FEMTILE_UNWATCHED void femtile_call(void (*kernel)(A...), void** arguments) {
    femtile_call(kernel, arguments, typename FemtileCount<sizeof...(A)>::Indices());
}
template <typename... A>
FEMTILE_UNWATCHED void femtile_write_signature(void (*)(A...), char* text) {
    FemtileText out{text};
    (out.put_type<A>(), ...);
    *out.at = 0;
}

#define FEMTILE_EXPORT extern "C" __attribute__((visibility("default")))
#define FEMTILE_ENTRY(name)                                                                                  \
    FEMTILE_EXPORT FEMTILE_UNWATCHED void femtile_thunk_##name(void** arguments) { femtile_call(&name, arguments); } \
    FEMTILE_EXPORT FEMTILE_UNWATCHED void femtile_signature_##name(char* text) {                              \
        femtile_write_signature(&name, text);                                                                \
    }
