/// Published figures of a mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theirs {
    pub name: &'static str,
    /// Table 1: nodes, elements, least and greatest valence.
    pub sizes: [usize; 4],
    /// Table 1: millions of non-zeros.
    pub million_nonzeros: f64,
    /// Table 2: seconds of assembly, GPU and CPU.
    pub assembly: [f64; 2],
    /// Table 3: seconds of set-up, of [`METHODS`].
    pub setup: [f64; 3],
    /// Table 5: seconds and iterations of [`METHODS`], then of CG on the GPU.
    pub solves: [(f64, usize); 4],
    /// Table 6: milliseconds of an iteration of [`METHODS`].
    pub iteration_ms: [f64; 3],
}

/// Conjugate gradients with the multigrid of the paper, of hypre on a CPU, of CUSP on the GPU.
pub(super) const METHODS: [&str; 3] = ["patch", "hypre", "CUSP"];

#[rustfmt::skip]
pub(super) static MESHES: [Theirs; 5] = [
    Theirs { name: "Regular", sizes: [274_625, 1_572_864, 3, 18], million_nonzeros: 5.1,
        assembly: [0.0298, 1.080], setup: [0.519, 1.10, 0.420],
        solves: [(0.139, 19), (3.86, 25), (0.175, 36), (0.680, 329)], iteration_ms: [7.31, 154.0, 4.68] },
    Theirs { name: "Irregular", sizes: [197_561, 1_122_304, 3, 25], million_nonzeros: 4.1,
        assembly: [0.0229, 1.010], setup: [0.385, 0.665, 0.292],
        solves: [(0.167, 31), (3.02, 29), (0.216, 56), (2.43, 1639)], iteration_ms: [5.40, 104.0, 3.86] },
    Theirs { name: "Heart", sizes: [437_355, 2_306_717, 5, 36], million_nonzeros: 9.4,
        assembly: [0.0465, 3.114], setup: [0.813, 2.51, 0.604],
        solves: [(0.218, 20), (11.2, 31), (0.631, 46), (4.64, 1148)], iteration_ms: [10.9, 361.0, 13.7] },
    Theirs { name: "Brain", sizes: [322_497, 1_805_242, 6, 34], million_nonzeros: 8.7,
        assembly: [0.0355, 3.077], setup: [0.591, 1.68, 0.451],
        solves: [(0.165, 19), (7.78, 27), (0.432, 45), (8.15, 1838)], iteration_ms: [8.71, 288.0, 9.60] },
    Theirs { name: "Blobs", sizes: [277_657, 1_650_105, 5, 46], million_nonzeros: 4.2,
        assembly: [0.0319, 2.525], setup: [0.569, 1.27, 0.431],
        solves: [(0.172, 23), (5.70, 28), (0.409, 50), (3.34, 1048)], iteration_ms: [7.49, 204.0, 8.18] },
];

/// Table 4: iterations on Blobs with 1, 10 and 100 inside, of [`METHODS`] and of CG.
pub(super) const MATERIALS: [(&str, [usize; 3]); 4] =
    [("patch", [23, 31, 60]), ("hypre", [28, 30, 40]), ("CUSP", [50, 60, 122]), ("CG", [1048, 2419, 7071])];
