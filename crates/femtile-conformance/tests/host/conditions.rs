//! Conditions on parts of the boundary that overlap: a case file, a program and lists of facets say the same.

use std::fmt::Write;
use std::path::Path;

use femtile::mesh::Mesh;
use femtile::mesh::check::{BoundaryFacets, CheckConfig, boundary_facets, check};
use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile::{DeviceChoice, Poisson, Region, SolverConfig};
use femtile_case::{Case, Silent};
use proptest::prelude::*;

/// A part of the boundary of a box.
#[derive(Debug, Clone)]
enum Part {
    All,
    /// A side by the name or the number of its tag.
    Side {
        side: usize,
        by_number: bool,
    },
    /// Facets with all nodes on one side of a plane.
    Half {
        axis: usize,
        is_below: bool,
        at: f64,
    },
}

#[derive(Debug, Clone)]
struct Given {
    part: Part,
    /// Dirichlet, Neumann or Robin.
    kind: usize,
    value: &'static str,
}

#[derive(Debug, Clone)]
struct Problem {
    /// Triangles, quadrilaterals, tetrahedra, hexahedra.
    kind: usize,
    cells: [usize; 3],
    conditions: Vec<Given>,
}

const SIDES: [&str; 6] = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"];
const AXES: [&str; 3] = ["x", "y", "z"];

impl Part {
    fn name(&self) -> String {
        match *self {
            Self::All => "all".into(),
            Self::Side { side, by_number: false } => SIDES[side].into(),
            Self::Side { side, by_number: true } => (side + 1).to_string(),
            Self::Half { axis, is_below, at } => {
                format!("{} {} {at:?}", AXES[axis], if is_below { "<" } else { ">" })
            }
        }
    }

    /// Positions in the boundary, found from coordinates alone.
    fn facets(&self, mesh: &Mesh, boundary: &BoundaryFacets) -> Vec<u32> {
        let holds = |point: [f64; 3]| match *self {
            Self::All => true,
            Self::Side { side, .. } => (point[side / 2] - (side % 2) as f64).abs() < 1e-12,
            Self::Half { axis, is_below: true, at } => point[axis] < at,
            Self::Half { axis, at, .. } => point[axis] > at,
        };
        let is_in = |facet: &u32| {
            boundary.facet(*facet as usize).iter().all(|&node| holds(mesh.points[node as usize]))
        };
        (0..boundary.len() as u32).filter(is_in).collect()
    }
}

impl Problem {
    fn dimension(&self) -> usize {
        if self.kind < 2 { 2 } else { 3 }
    }

    fn mesh(&self) -> Mesh {
        let cells = self.cells;
        let in_plane =
            |split| square(&SquareConfig { cells: [cells[0], cells[1]], split, ..SquareConfig::default() });
        let in_space = |split| box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() });
        let mut mesh = match self.kind {
            0 => in_plane(SquareSplit::Triangles),
            1 => in_plane(SquareSplit::Quadrilateral),
            2 => in_space(BoxSplit::Kuhn),
            _ => in_space(BoxSplit::Hexahedron),
        }
        .unwrap();
        check(&mut mesh, &CheckConfig::default()).unwrap();
        mesh
    }

    /// The same as the text of a case file.
    fn text(&self) -> String {
        let [a, b, c] = self.cells;
        let mut text = String::from("[mesh]\n");
        let _ = match self.kind {
            0 => {
                writeln!(text, "generate = {{ kind = \"square\", cells = [{a}, {b}], cell = \"triangle\" }}")
            }
            1 => writeln!(
                text,
                "generate = {{ kind = \"square\", cells = [{a}, {b}], cell = \"quadrilateral\" }}"
            ),
            2 => writeln!(
                text,
                "generate = {{ kind = \"box\", cells = [{a}, {b}, {c}], cell = \"tetrahedron\" }}"
            ),
            _ => writeln!(
                text,
                "generate = {{ kind = \"box\", cells = [{a}, {b}, {c}], cell = \"hexahedron\" }}"
            ),
        };
        text += "[equation]\nsigma = \"1 + x*y\"\nlambda = 0.5\nsource = \"x - y\"\n";
        text += "[solver]\ndevice = \"cpu\"\n[output]\nplot = false\n";
        for Given { part, kind, value } in &self.conditions {
            let _ = writeln!(text, "[[boundary]]\nwhere = \"{}\"", part.name());
            let _ = match kind {
                0 => writeln!(text, "dirichlet = \"{value}\""),
                1 => writeln!(text, "neumann = \"{value}\""),
                _ => writeln!(text, "robin = {{ coefficient = 2, value = \"{value}\" }}"),
            };
        }
        text
    }

    /// The same in a program, with parts as `region` gives them.
    fn problem<'m>(&self, mesh: &'m Mesh, region: impl Fn(&Part) -> Region) -> Poisson<'m> {
        let mut problem = Poisson::new(mesh).sigma("1 + x*y").lambda(0.5).source("x - y");
        for Given { part, kind, value } in &self.conditions {
            let (on, value) = (region(part), *value);
            problem = match kind {
                0 => problem.dirichlet(on, value),
                1 => problem.neumann(on, value),
                _ => problem.robin(on, 2.0, value),
            }
            .unwrap();
        }
        problem
    }
}

fn parts() -> impl Strategy<Value = Part> {
    prop_oneof![
        1 => Just(Part::All),
        3 => (0..6_usize, any::<bool>()).prop_map(|(side, by_number)| Part::Side { side, by_number }),
        3 => (0..3_usize, any::<bool>(), 1..10_u32)
            .prop_map(|(axis, is_below, tenths)| Part::Half { axis, is_below, at: f64::from(tenths) * 0.1 + 0.01 }),
    ]
}

fn problems() -> impl Strategy<Value = Problem> {
    let value = prop_oneof![Just("1"), Just("x + 2*y"), Just("x*y - 1"), Just("sin(3*x)")];
    let given = (parts(), 0..3_usize, value).prop_map(|(part, kind, value)| Given { part, kind, value });
    let conditions = prop::collection::vec(given, 1..6);
    (0..4_usize, [1..5_usize, 1..5, 1..4], conditions).prop_map(|(kind, cells, conditions)| {
        let mut problem = Problem { kind, cells, conditions };
        let n = problem.dimension();
        let mesh = problem.mesh();
        let boundary = boundary_facets(&mesh);
        // Sides that the plane has not, and planes beyond all facets, would be refused.
        problem.conditions.retain(|given| {
            let is_there = match given.part {
                Part::All => true,
                Part::Side { side, .. } => side < 2 * n,
                Part::Half { axis, .. } => axis < n,
            };
            is_there && !given.part.facets(&mesh, &boundary).is_empty()
        });
        problem
    })
}

/// The bytes of the file with the solution of a case.
fn of_case(problem: &Problem, folder: &Path) -> Vec<u8> {
    let mut case = Case::parse(&folder.join("case.toml"), problem.text()).unwrap();
    case.file.output.directory = folder.join("case");
    femtile_case::run(&case, &mut Silent).unwrap();
    std::fs::read(folder.join("case/solution.vtu")).unwrap()
}

/// The same of a program.
fn of_program(problem: &Poisson<'_>, path: &Path) -> Vec<u8> {
    let config = SolverConfig { device: DeviceChoice::Cpu, ..SolverConfig::default() };
    let solution = problem.solve(&config).unwrap();
    assert!(solution.has_converged());
    solution.write_vtu(path).unwrap();
    std::fs::read(path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_and_lists_of_facets_give_the_solution_of_the_case_file_bit_for_bit(problem in problems()) {
        let folder = tempfile::tempdir().unwrap();
        let mesh = problem.mesh();
        let boundary = boundary_facets(&mesh);
        let expected = of_case(&problem, folder.path());
        let named = problem.problem(&mesh, |part| Region::Named(part.name()));
        prop_assert!(of_program(&named, &folder.path().join("named.vtu")) == expected);
        let listed = problem.problem(&mesh, |part| Region::Facets(part.facets(&mesh, &boundary)));
        prop_assert!(of_program(&listed, &folder.path().join("listed.vtu")) == expected);
    }
}

#[test]
fn another_order_of_conditions_is_another_problem() {
    let given = |value| Given { part: Part::All, kind: 0, value };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [["1", "sin(3*x)"], ["sin(3*x)", "1"]].map(|values| {
        let conditions = values.map(given).to_vec();
        of_case(&Problem { kind: 0, cells: [3, 3, 1], conditions }, folder.path())
    });
    assert!(first != second);
}
