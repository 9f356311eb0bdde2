//! Products on simplices whose tangent is constant in each cell, against the reference.

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;
use femtile_form::{Coefficient, Equation, Form};
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::DeformConfig;
use femtile_mesh::{CellKind, Mesh};
use femtile_operator::{CpuOperator, DiscreteForm, State, reference};
use femtile_space::Space;

use crate::meshes::{into_space, mesh};
use crate::random::numbers;

/// A scalar form, one of several components with a symmetric tangent, one whose tangent is not symmetric and couples values, a mass
/// matrix, and one with a rate.
const FORMS: [&str; 6] = [
    "unknown = { u = {} }\n[cells]\nflux = \"[k*grad(u)[0] + 0.3*grad(u)[1], 0.3*grad(u)[0] + 2*grad(u)[1] LAST]\"\n\
     source = \"1 - k*u\"\n",
    "unknown = { u = {} }\n[cells]\nflux = \"k*grad(u)\"\n",
    "unknown = { u = { components = \"dimension\" } }\n[cells]\nenergy = \"k*sym(grad(u)):sym(grad(u)) + 0.6*div(u)^2\"\n",
    "unknown = { a = {}, b = {} }\n[cells]\nflux = { a = \"k*grad(a) + 0.5*grad(b)\", b = \"grad(b) - 0.3*grad(a)\" }\n\
     source = { a = \"-2*a + b\", b = \"0.25*a - k*b\" }\n",
    "unknown = { u = {} }\n[cells]\nsource = \"-k*u\"\n",
    "unknown = { u = {} }\n[cells]\nflux = \"(2 + t)*grad(u)\"\nsource = \"-k*u_t\"\n",
];

fn form(text: &str, dimension: usize, is_by_tag: bool) -> Form {
    let last = if dimension == 3 { ", 3*grad(u)[2]" } else { "" };
    let equation = Equation::from_toml(
        "test",
        &format!("coefficients = {{ k = {{}} }}\n{}", text.replace(" LAST", last)),
    )
    .unwrap();
    let k = match is_by_tag {
        true => Coefficient::ByTag([(0, 1.5.into()), (3, 0.25.into())].into()),
        false => Coefficient::Constant(1.25),
    };
    equation.form(dimension).with("k", k).unwrap().build().unwrap()
}

/// Returns a mesh whose number of cells is no multiple of lanes.
fn odd_mesh(kind: CellKind) -> Mesh {
    let deformation = Some(DeformConfig { amplitude: 0.05, order: 1 });
    let mut mesh = match kind {
        CellKind::Triangle => mesh(kind, [3, 2, 1], deformation),
        _ => mesh(kind, [2, 1, 1], deformation),
    };
    mesh.cells.truncate(11 * kind.n_nodes());
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| if cell % 3 == 0 { 0 } else { 3 }).collect();
    mesh
}

/// Fails unless products agree with the reference on all SIMD levels, with the same bits for any number of threads.
fn check(space: &Space<'_>, form: &Form, what: &str) {
    let boundary = boundary_facets(space.mesh());
    let discrete = DiscreteForm::new(space, form, &boundary).unwrap();
    let n = discrete.n_unknowns();
    let direction = numbers(n, 7);
    for state in [
        State { time: 0.3, shift: 1.5, ..State::default() },
        State { time: 0.7, shift: 0.5, ..State::default() },
    ] {
        let mut y = vec![f64::NAN; n];
        reference::apply(&discrete, &state, &direction, &mut y).unwrap();
        let size = y.iter().fold(0.0f64, |size, value| size.max(value.abs()));
        for simd in SimdLevel::available() {
            let mut bits: Option<Vec<u64>> = None;
            for threads in 1..=3 {
                let operator = CpuOperator::new(discrete, &Cpu::with_simd(threads, simd).unwrap()).unwrap();
                let mut found = vec![f64::NAN; n];
                // Another state first, whose tangent must not be kept.
                operator.apply(&State::default(), &direction, &mut found).unwrap();
                operator.apply(&state, &direction, &mut found).unwrap();
                for (i, (found, y)) in found.iter().zip(&y).enumerate() {
                    assert!((found - y).abs() < 1e-12 * size, "{what}, {simd}: {found} and {y} at {i}");
                }
                let found: Vec<u64> = found.into_iter().map(f64::to_bits).collect();
                assert!(*bits.get_or_insert(found.clone()) == found, "{what}, {simd}: bits differ");
            }
        }
    }
}

#[test]
fn products_of_constant_tangents_agree_with_the_reference() {
    for kind in [CellKind::Triangle, CellKind::Tetrahedron] {
        let mesh = odd_mesh(kind);
        for degree in 1..=6 {
            let space = Space::new(&mesh, degree).unwrap();
            for (which, text) in FORMS.iter().enumerate() {
                // The reference takes long on the highest degrees.
                if degree < 5 || kind == CellKind::Triangle || which < 3 {
                    let is_by_tag = (degree + which) % 2 == 0;
                    check(
                        &space,
                        &form(text, mesh.dimension(), is_by_tag),
                        &format!("{kind} {degree}, form {which}"),
                    );
                }
            }
        }
    }
}

#[test]
fn products_on_surfaces_agree_with_the_reference() {
    let mesh = into_space(&odd_mesh(CellKind::Triangle), |[x, y, _]| [x - 0.3 * y, y, 0.5 * x + 0.2 * y]);
    for degree in 1..=4 {
        let space = Space::new(&mesh, degree).unwrap();
        for which in [1, 3, 4] {
            check(&space, &form(FORMS[which], 3, true), &format!("surface {degree}, form {which}"));
        }
    }
}

#[test]
fn products_of_scalar_diffusion_read_six_numbers_per_tetrahedron() {
    let mesh = odd_mesh(CellKind::Tetrahedron);
    let (space, boundary) = (Space::new(&mesh, 3).unwrap(), boundary_facets(&mesh));
    let form = form(FORMS[1], 3, true);
    let operator =
        CpuOperator::new(DiscreteForm::new(&space, &form, &boundary).unwrap(), &Cpu::new(1).unwrap())
            .unwrap();
    let before = operator.bytes();
    let (x, mut y) = (vec![1.0; space.n_dofs()], vec![f64::NAN; space.n_dofs()]);
    operator.apply(&State::default(), &x, &mut y).unwrap();
    assert!(y.iter().all(|value| value.abs() < 1e-13));
    // Eleven cells take two batches of eight; before, ten numbers and those at the points.
    assert!(operator.bytes() < before && (operator.bytes() - numbers_of(&space)) == 6 * 8 * 16);
}

/// Returns the bytes of the numbers of unknowns of an operator: by cell, and for each unknown its places.
fn numbers_of(space: &Space<'_>) -> usize {
    4 * (2 * space.n_cells() * space.element().n_dofs() + space.n_dofs() + 1)
}
