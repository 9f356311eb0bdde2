//! One file a benchmark.

mod amg;
mod assembly;
mod bake_off;
pub mod bake_off_cuda;
mod bandwidth;
mod block_tridiagonal;
mod cardiac;
mod cg;
mod csr;
mod cuda;
mod defaults;
mod forms;
mod forms_cuda;
mod gmg;
mod heat;
mod petsc;
mod read_gmsh;
mod refill;
mod scaling;
mod simplices;
mod simplices_cuda;
mod spmv;
mod sum_factorization;
mod tridiagonal;
mod tridiagonal_cuda;
mod tridiagonal_split;
mod whole;

use femtile::device::Cpu;
use femtile::device::cpu::Bandwidth;

use crate::{BenchError, Benchmark};

pub(crate) fn all() -> Vec<Benchmark> {
    vec![
        Benchmark {
            name: "bandwidth",
            summary: "memory bandwidth: dot product and triad of long vectors",
            run: bandwidth::run,
        },
        Benchmark {
            name: "csr",
            summary: "CSR product on the box of linear tetrahedra, against read bandwidth",
            run: csr::run,
        },
        Benchmark {
            name: "cg",
            summary: "one Jacobi-CG iteration on that box, against read bandwidth",
            run: cg::run,
        },
        Benchmark {
            name: "assembly",
            summary: "pattern, matrix and right side of the box of linear tetrahedra",
            run: assembly::run,
        },
        Benchmark {
            name: "amg",
            summary: "conjugate gradients with multigrid to 1e-8 on that box: set-up and solve",
            run: amg::run,
        },
        Benchmark {
            name: "laplace",
            summary: "the Laplacian without a matrix on hexahedra, p + 1 Gauss points, degrees 3 to 8",
            run: bake_off::laplace,
        },
        Benchmark {
            name: "bp1",
            summary: "bake-off problem 1: the mass matrix, p + 2 Gauss points",
            run: bake_off::bp1,
        },
        Benchmark {
            name: "bp2",
            summary: "bake-off problem 2: as bp1, three components",
            run: bake_off::bp2,
        },
        Benchmark {
            name: "bp3",
            summary: "bake-off problem 3: the Laplacian, p + 2 Gauss points",
            run: bake_off::bp3,
        },
        Benchmark {
            name: "bp4",
            summary: "bake-off problem 4: as bp3, three components",
            run: bake_off::bp4,
        },
        Benchmark {
            name: "bp5",
            summary: "bake-off problem 5: the Laplacian, p + 1 Gauss-Lobatto points",
            run: bake_off::bp5,
        },
        Benchmark {
            name: "bp6",
            summary: "bake-off problem 6: as bp5, three components",
            run: bake_off::bp6,
        },
        Benchmark {
            name: "bake-off-cuda",
            summary: "on a GPU: bake-off problems 1, 3 and 5, or 2, 4 and 6, product and Jacobi-CG iteration, degrees 3 to 8",
            run: bake_off_cuda::run,
        },
        Benchmark {
            name: "forms",
            summary: "products of forms by the general path: the Laplacian beside the tuned kernels, elasticity; degrees 1 to 6",
            run: forms::run,
        },
        Benchmark {
            name: "simplices",
            summary: "products of forms on tetrahedra without a matrix beside CSR: diffusion, elasticity; degrees 1 to 4",
            run: simplices::run,
        },
        Benchmark {
            name: "forms-cuda",
            summary: "on a GPU: products of forms by the general path: the Laplacian beside the kernels of its class, elasticity; degrees 1 to 8",
            run: forms_cuda::run,
        },
        Benchmark {
            name: "simplices-cuda",
            summary: "on a GPU: products of forms on tetrahedra without a matrix: the Laplacian, elasticity; degrees 1 to 6",
            run: simplices_cuda::run,
        },
        Benchmark {
            name: "read-gmsh",
            summary: "a box of 105,456 tetrahedra from Gmsh 4.1 text",
            run: read_gmsh::run,
        },
        Benchmark {
            name: "refill",
            summary: "values filled into matrices on a fixed pattern, on processors and on a GPU",
            run: refill::run,
        },
        Benchmark {
            name: "scaling",
            summary: "a model of 1 to 131,072 ranks: time of an iteration",
            run: scaling::run,
        },
        Benchmark {
            name: "petsc",
            summary: "Jacobi-CG to 1e-8 on the box beside PETSc's, one thread",
            run: petsc::run,
        },
        Benchmark {
            name: "block-tridiagonal",
            summary: "block tridiagonal systems, blocks of 2 to 8 rows, CPU and GPU, beside MKL's gbsv",
            run: block_tridiagonal::run,
        },
        Benchmark {
            name: "cardiac",
            summary: "steps of the monodomain equation on the slab of the N-version benchmark",
            run: cardiac::run,
        },
        Benchmark {
            name: "cuda",
            summary: "on a GPU: triad, dot, CSR product, Jacobi-CG iteration, launches and nodes",
            run: cuda::run,
        },
        Benchmark {
            name: "defaults",
            summary: "whole solves with what `auto` chooses beside every preconditioner, 1,000 to 3 million unknowns",
            run: defaults::run,
        },
        Benchmark {
            name: "gmg",
            summary: "conjugate gradients with geometric multigrid to 1e-9 on a cube: set-up and solve, degrees 1 to 8",
            run: gmg::run,
        },
        Benchmark {
            name: "heat",
            summary: "steps in time of u_t = Δu + 1 on the unit cube of linear tetrahedra, by BDF2",
            run: heat::run,
        },
        Benchmark { name: "spmv", summary: "sparse products in every format", run: spmv::run },
        Benchmark {
            name: "sum-factorization",
            summary: "1-D tables times tensors of 3 to 9 values a side, against the rate of arithmetic",
            run: sum_factorization::run,
        },
        Benchmark {
            name: "tridiagonal",
            summary: "batches of tridiagonal systems along each axis, against a streamed triad and MKL",
            run: tridiagonal::run,
        },
        Benchmark {
            name: "tridiagonal-split",
            summary: "tridiagonal systems of which ranks have consecutive rows, beside one rank",
            run: tridiagonal_split::run,
        },
        Benchmark {
            name: "tridiagonal-cuda",
            summary: "on a GPU: batches of tridiagonal systems of 64 to 1,024 rows, along two axes",
            run: tridiagonal_cuda::run,
        },
        Benchmark {
            name: "whole",
            summary: "whole runs of `femtile solve`, from case file and mesh to the files of results",
            run: whole::run,
        },
    ]
}

/// Rounds in which bandwidth and work are measured in turn: on a shared machine both vary with time.
const ROUNDS: usize = 3;

/// Long enough to be out of the last-level cache of most machines.
const VECTOR_BYTES: usize = 256 << 20;

/// Alternates `work` with measurements of the bandwidth, of which it returns the best.
fn between_bandwidths(
    cpu: &Cpu,
    mut work: impl FnMut() -> Result<(), BenchError>,
) -> Result<Bandwidth, BenchError> {
    let mut best = cpu.measure_bandwidth(VECTOR_BYTES)?;
    for _ in 0..ROUNDS {
        work()?;
        let found = cpu.measure_bandwidth(VECTOR_BYTES)?;
        best.read_gb_per_s = best.read_gb_per_s.max(found.read_gb_per_s);
        best.triad_gb_per_s = best.triad_gb_per_s.max(found.triad_gb_per_s);
    }
    Ok(best)
}
