//! Parts shared by tests of several crates: mesh files in every encoding, counted memory, all GPU kernels.

use femtile::device::cuda::Specialisation;

pub mod allocation;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod error_study;
pub mod mesh_files;
pub mod mixed_files;
pub mod quadratic_files;
pub mod structure;
pub mod suite;

/// The GPU programs of Femtile and of the formats that it is compared with: a representative set, or every one that a solve may ask for.
pub fn specialisations(all: bool) -> Vec<Specialisation> {
    // Two of five forms stand for all: of each kind of coefficient one, in either dimension or precision.
    let forms = femtile::fem::cuda_specialisations().into_iter();
    let forms = forms.chain(femtile_research::patch_assembly::cuda_specialisations());
    let forms = forms.chain(femtile::matrix_free::cuda_specialisations());
    let forms = forms.chain(femtile::operator::cuda_specialisations().unwrap_or_default()).enumerate();
    let forms = forms.filter(|(i, _)| all || [0, 2].contains(&(i % 5))).map(|(_, form)| form);
    // Of degree 3, where they are of one, in double precision alone, unless all are asked for.
    let of_boxes = femtile::multigrid::cuda_specialisations().into_iter();
    let of_boxes = of_boxes.chain(femtile_research::published_kernels::cuda_specialisations());
    let of_boxes = of_boxes.filter(|program| {
        let is_of_degree = is_of(program, "FEMTILE_DEGREE", "3").unwrap_or(true);
        all || is_of_degree && is_of(program, "FEMTILE_T", "double") == Some(true)
    });
    [
        femtile::device::cuda::specialisations(),
        femtile::linalg::cuda_specialisations(),
        femtile::linalg::sparse::cuda_specialisations(),
        femtile_research::formats::cuda_specialisations(),
        femtile::tridiagonal::cuda_specialisations(),
        suite::headers::specialisations(),
        forms.collect(),
        femtile::amg::cuda_specialisations(),
        femtile::comm::cuda_specialisations(),
        of_boxes.collect(),
        femtile::time::cuda_specialisations(),
        femtile_cardiac::cuda_specialisations(),
    ]
    .concat()
}

/// Returns whether a macro of a program has this value, if there is such a macro.
fn is_of(program: &Specialisation, name: &str, value: &str) -> Option<bool> {
    let (_, found) = program.defines().iter().find(|(define, _)| *define == name)?;
    Some(found == value)
}
