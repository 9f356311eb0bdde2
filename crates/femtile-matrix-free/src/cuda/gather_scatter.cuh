// Gather and scatter between vectors of all unknowns and columns of nodes, one per thread.
#pragma once
#include "columns.cuh"
#include "lines.cuh"

// Entities of a cell, and those of a layer across the last axis.
const u32 ENTITIES = DIMENSION == 3 ? 27 : 9, OF_LAYER = ENTITIES / 3;

// Words of a cell: first unknowns of the entities, targets of their values, and marks, a bit per entity.
const u32 TARGETS = ENTITIES, ADDED = 2 * ENTITIES, SHARED_MARKS = ADDED + 1, CONSTRAINED = ADDED + 2, LIST = ADDED + 3;
const u32 NODES_OF_LAYER = DIMENSION == 3 ? N * N : N;
const u32 METRIC_CELL = ADDED + 4, CELL_WORDS = DIMENSION == 3 ? 64 : 24;

// The part of a cell along a column.
struct CellColumn {
    u32 firsts[3];
    u32 marks;  // bits 0, 1, 2 for the three entities; added, shared, constrained; then whether another rank has the inside
    u32 list;

    __device__ inline bool is_empty() const { return firsts[0] == NOTHING; }
    // Whether an earlier batch has the d-th entity; several groups have it; its unknowns are free.
    __device__ inline bool is_added(u32 d) const { return marks >> d & 1; }
    __device__ inline bool is_shared(u32 d) const { return marks >> (3 + d) & 1; }
    __device__ inline bool is_free(u32 d) const { return (marks >> (6 + d) & 1) == 0; }
    __device__ inline bool is_of_other() const { return FEMTILE_GHOSTS && (marks >> 9 & 1); }
};

// A column of nodes in any cell; `y` is 0 in two dimensions.
struct Column : EntityColumn<P> {
    __device__ inline Column(u32 x, u32 y) : EntityColumn<P>(x, y) {}

    __device__ inline CellColumn of_cell(const u32* words) const {
        CellColumn cell;
#pragma unroll
        for (u32 d = 0; d < 3; ++d) cell.firsts[d] = __ldg(words + entity + OF_LAYER * d);
        cell.marks = marks(words, ADDED) | marks(words, SHARED_MARKS) << 3 | marks(words, CONSTRAINED) << 6;
        if (FEMTILE_GHOSTS) cell.marks |= __ldg(words + ADDED) >> 31 << 9;
        cell.list = FEMTILE_LISTS ? __ldg(words + LIST) : NOTHING;
        return cell;
    }

    __device__ inline u32 marks(const u32* words, u32 word) const {
        const u32 bits = __ldg(words + word) >> entity;
        return (bits & 1) | (bits >> (OF_LAYER - 1) & 2) | (bits >> (2 * OF_LAYER - 2) & 4);
    }

    // Place of node k in its entity.
    __device__ inline u32 place(const CellColumn& cell, const u32* lists, u32 k) const {
        if (FEMTILE_LISTS && cell.list != NOTHING) {
            return __ldg(lists + (u64)cell.list + node + NODES_OF_LAYER * k) - cell.firsts[digit(k)];
        }
        return place_of(k);
    }
};

// Where values come from: a vector, and on a part of a mesh another one with the values of other ranks, whose numbers follow.
struct Source {
    const T *x, *ghosts;
    u32 n_owned;

    // The components from `first` on, with the same numbers of nodes.
    __device__ inline Source from(u32 first) const {
        return FEMTILE_GHOSTS ? Source{x + first, ghosts + first, n_owned} : Source{x + first, ghosts, n_owned};
    }

    // The values of a node from its first component on; all nodes of an entity are owned, or none.
    __device__ inline const T* at(u32 node) const {
        if (FEMTILE_GHOSTS && node >= n_owned) return ghosts + (node - n_owned) * COMPONENTS;
        return x + node * COMPONENTS;
    }
};

// Gathers the values at the nodes of a column, of components from the one that x begins with; zeros where constrained.
__device__ inline void gather(
    T (&u)[TOGETHER][N], const Source& x, const Column& column, const CellColumn& cell, const u32* lists) {
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        const u32 d = Column::digit(k);
        const T* const node = x.at(cell.firsts[d] + column.place(cell, lists, k));
#pragma unroll
        for (u32 c = 0; c < TOGETHER; ++c) u[c][k] = cell.is_free(d) ? __ldg(node + c) : (T)0;
    }
}

// Targets of the values of a column: y or the shares.
struct Targets {
    T *y, *shares;
    u32 places[3];

    __device__ inline Targets(T* y, T* shares, const Column& column, const u32* words) : y(y), shares(shares) {
#pragma unroll
        for (u32 d = 0; d < 3; ++d) places[d] = __ldg(words + TARGETS + column.entity + OF_LAYER * d);
    }

    // First component of node k.
    __device__ inline T* at(const Column& column, const CellColumn& cell, const u32* lists, u32 k) const {
        const u32 d = Column::digit(k);
        return (cell.is_shared(d) ? shares : y) + (places[d] + column.place(cell, lists, k)) * COMPONENTS;
    }

    // Reads the sums of earlier batches, of components from `first` on; zeros where there are none yet.
    __device__ inline void read(
        T (&before)[TOGETHER][N], u32 first, const Column& column, const CellColumn& cell, const u32* lists) const {
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (!cell.is_added(Column::digit(k))) continue;
            const T* const node = at(column, cell, lists, k) + first;
#pragma unroll
            for (u32 c = 0; c < TOGETHER; ++c) before[c][k] = node[c];
        }
    }

    __device__ inline void write(
        const T (&sums)[TOGETHER][N], u32 first, const Column& column, const CellColumn& cell, const u32* lists) const {
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (!cell.is_free(Column::digit(k))) continue;
            T* const node = at(column, cell, lists, k) + first;
#pragma unroll
            for (u32 c = 0; c < TOGETHER; ++c) node[c] = sums[c][k];
        }
    }
};
