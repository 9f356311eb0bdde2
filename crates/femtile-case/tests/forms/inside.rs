//! Tagged facets inside the mesh: values, sources and fluxes of either side.

use std::sync::Arc;

use femtile_case::{Case, CaseError, Embedding, Report, Silent, run};
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{CellKind, Mesh};

/// The kinds of cells.
pub(crate) const KINDS: [CellKind; 4] =
    [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Tetrahedron, CellKind::Hexahedron];

/// The tag of the wall between the halves.
pub(crate) const WALL: i32 = 9;

/// A body 2 long, 1 wide and high, with cells `left` and `right` of the `wall` at x = 1; nodes off the wall are moved.
pub(crate) fn halves(kind: CellKind) -> Mesh {
    let mut mesh = match kind {
        CellKind::Triangle | CellKind::Quadrilateral => {
            let split =
                if kind == CellKind::Triangle { SquareSplit::Triangles } else { SquareSplit::Quadrilateral };
            square(&SquareConfig { upper: [2.0, 1.0], cells: [6, 3], split, ..SquareConfig::default() })
        }
        _ => {
            let split = if kind == CellKind::Tetrahedron { BoxSplit::Kuhn } else { BoxSplit::Hexahedron };
            box_mesh(&BoxConfig { upper: [2.0, 1.0, 1.0], cells: [4, 2, 3], split, ..BoxConfig::default() })
        }
    }
    .unwrap();
    let d = mesh.dimension();
    mesh.cell_tags =
        (0..mesh.n_cells()).map(|cell| if middle(&mesh, mesh.cell(cell)) < 1.0 { 1 } else { 2 }).collect();
    mesh.tag_names.extend([
        ((d, 1), "left".into()),
        ((d, 2), "right".into()),
        ((d - 1, WALL), "wall".into()),
    ]);
    tag_wall(&mut mesh, WALL, &|_| true);
    for [x, y, _] in &mut mesh.points {
        *x += 0.1 * (*y - 0.3) * (*x * (*x - 1.0) * (*x - 2.0));
    }
    mesh
}

fn middle(mesh: &Mesh, nodes: &[u32]) -> f64 {
    nodes.iter().map(|&node| mesh.points[node as usize][0]).sum::<f64>() / nodes.len() as f64
}

/// Tags the facets at x = 1 whose nodes are wanted.
pub(crate) fn tag_wall(mesh: &mut Mesh, tag: i32, is_wanted: &dyn Fn([f64; 3]) -> bool) {
    for cell in (0..mesh.n_cells()).filter(|&cell| mesh.cell_tags[cell] == 1) {
        let cell = mesh.cell(cell).to_vec();
        for local in mesh.kind.facets() {
            let nodes: Vec<u32> = local.iter().map(|&i| cell[i]).collect();
            let is_on = |node: &u32| {
                let point = mesh.points[*node as usize];
                (point[0] - 1.0).abs() < 1e-9 && is_wanted(point)
            };
            if nodes.iter().all(is_on) {
                mesh.facets.nodes.extend(nodes);
                mesh.facets.tags.push(tag);
            }
        }
    }
}

/// Runs a case on a mesh.
pub(crate) fn try_solve_on(mesh: &Mesh, text: &str) -> Result<Report, CaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mesh = Some(Arc::new(mesh.clone()));
    let embedding = Embedding { mesh, writes_files: false, ..Embedding::default() };
    let case = Case::parse_embedded(&folder.path().join("case.toml"), text.into(), Vec::new(), embedding)?;
    run(&case, &mut Silent)
}

pub(crate) fn solve_on(mesh: &Mesh, text: &str) -> Report {
    let report = try_solve_on(mesh, text).unwrap();
    assert_eq!(report.solve.stop.name(), "converged", "{text}");
    report
}

pub(crate) fn refusal_on(mesh: &Mesh, text: &str) -> (String, String) {
    match try_solve_on(mesh, text) {
        Err(CaseError::Input { key, message, .. }) => (key.unwrap_or_default(), message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken: {text}"),
    }
}

pub(crate) fn is_close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-10, "{what}: {found} and {expected} differ by {error:.1e}");
}

/// A case of a degree with conditions and functionals.
pub(crate) fn case(degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\n[space]\ndegree = {degree}\n{equation}\n[output]\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n"
    )
}

pub(crate) const LAPLACE: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n";

/// The value 0 at both ends.
pub(crate) const ENDS: &str =
    "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n";

/// The fluxes into the body through the wall, out of its sides there, and in at the ends.
pub(crate) const FLUXES: &str = "{ name = \"wall\", kind = \"flux\", where = \"wall\" }, \
    { name = \"left\", kind = \"flux\", where = \"wall\", from = \"left\" }, \
    { name = \"right\", kind = \"flux\", where = \"wall\", from = \"right\" }, \
    { name = \"xmin\", kind = \"flux\", where = \"xmin\" }, { name = \"xmax\", kind = \"flux\", where = \"xmax\" }, \
    { name = \"max\", kind = \"max\" }";

fn are_close(found: &Report, expected: &[(&str, f64)], what: &str) {
    for &(name, expected) in expected {
        is_close(found.functionals[name], expected, &format!("{what}, {name}"));
    }
}

#[test]
fn a_heated_wall_gives_both_sides_half() {
    // u = 3/2 min(x, 2 − x).
    let expected =
        [("wall", 3.0), ("left", -1.5), ("right", -1.5), ("xmin", -1.5), ("xmax", -1.5), ("max", 1.5)];
    for kind in KINDS {
        let mesh = halves(kind);
        for degree in 1..=3 {
            for heat in ["flux = \"3\"", "total = 3", "flux = \"3\"\nfrom = \"right\""] {
                let equation = format!("{LAPLACE}{ENDS}[[boundary]]\nwhere = \"wall\"\n{heat}\n");
                let found = solve_on(&mesh, &case(degree, &equation, FLUXES));
                are_close(&found, &expected, &format!("{kind:?}, {degree}, {heat}"));
            }
        }
    }
}

#[test]
fn ranks_count_facets_between_their_cells_once() {
    for kind in [CellKind::Triangle, CellKind::Hexahedron] {
        let mesh = halves(kind);
        for flux in ["grad(u)", "(1 + u^2)*grad(u)"] {
            let equation = LAPLACE.replace("grad(u)", flux)
                + ENDS
                + "[[boundary]]\nwhere = \"wall\"\nflux = \"3 - u\"\n";
            let one = case(2, &equation, FLUXES);
            let one = if flux == "grad(u)" { one } else { one + "nonlinear_tolerance = 1e-13\n" };
            let alone = solve_on(&mesh, &one).functionals;
            let several = solve_on(&mesh, &format!("{one}ranks = 3\n")).functionals;
            for (name, expected) in &alone {
                is_close(several[name], *expected, &format!("{kind:?}, {flux}, {name}"));
            }
        }
    }
}

#[test]
fn a_value_on_a_wall_is_that_of_both_sides() {
    // u = 1 at x = 1, and 1 or 2 times steeper with σ.
    let expected = [("wall", 3.0), ("left", -1.0), ("right", -2.0), ("max", 1.0)];
    let sigma = "[equation]\nkind = \"convection-diffusion\"\nvelocity = VELOCITY\nsigma = { by_tag = { left = 1, right = 2 } }\n";
    for kind in KINDS {
        let mesh = halves(kind);
        let velocity = if mesh.dimension() == 2 { "[0, 0]" } else { "[0, 0, 0]" };
        for degree in 1..=3 {
            let equation = sigma.replace("VELOCITY", velocity)
                + ENDS
                + "[[boundary]]\nwhere = \"wall\"\ndirichlet = 1\n";
            are_close(
                &solve_on(&mesh, &case(degree, &equation, FLUXES)),
                &expected,
                &format!("{kind:?}, {degree}"),
            );
        }
    }
}

#[test]
fn fluxes_out_of_cells_balance_their_sources() {
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { k = { by_tag = { left = 1, right = 7 } } }\n\
                    flux = \"k*(1 + u^2)*grad(u)\"\nsource = \"exp(x)*(1 + y)\"\n\
                    [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n[[boundary]]\nwhere = \"xmax\"\nflux = \"2 - u\"\n\
                    [[boundary]]\nwhere = \"wall\"\nflux = \"3*y - u\"\n\
                    [[source]]\npoint = [0.5, 0.5]\ntotal = 4\n";
    let names = ["wall", "ymin", "ymax", "xmin", "xmax"];
    let of = |place: &str, from: &str| {
        format!("{{ name = \"{place} {from}\", kind = \"flux\", where = \"{place}\", from = \"{from}\" }}, ")
    };
    let left: String = names[..4].iter().map(|place| of(place, "left")).collect();
    let right: String = ["wall", "ymin", "ymax", "xmax"].map(|place| of(place, "right")).concat();
    let functionals = format!("{left}{right}{{ name = \"wall\", kind = \"flux\", where = \"wall\" }}");
    for kind in [CellKind::Triangle, CellKind::Quadrilateral] {
        let mesh = halves(kind);
        for degree in 1..=3 {
            let text = case(degree, equation, &functionals) + "nonlinear_tolerance = 1e-13\n";
            let found = solve_on(&mesh, &text).functionals;
            let sum = |from: &str| {
                found.iter().filter(|(name, _)| name.ends_with(from)).map(|(_, own)| own).sum::<f64>()
            };
            // The integral of the source over the cells alone is the flux that a body of them without conditions has.
            let source = |tag: i32| {
                let text = case(
                    degree,
                    "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { on = { by_tag = { left = LEFT, right = RIGHT } } }\n\
                     flux = \"grad(u)\"\nsource = \"on*exp(x)*(1 + y)\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n",
                    "{ name = \"all\", kind = \"flux\", where = \"all\" }",
                );
                let on = |own: i32| if own == tag { "1" } else { "0" };
                -solve_on(&mesh, &text.replace("LEFT", on(1)).replace("RIGHT", on(2))).functionals["all"]
            };
            is_close(sum(" left"), source(1) + 4.0, &format!("{kind:?}, {degree}, left"));
            is_close(sum(" right"), source(2), &format!("{kind:?}, {degree}, right"));
            is_close(
                found["wall left"] + found["wall right"],
                -found["wall"],
                &format!("{kind:?}, {degree}, wall"),
            );
        }
    }
}

#[test]
fn a_pressure_in_a_wall_needs_its_side() {
    let body = |from: &str| {
        format!(
            "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = ZEROS\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = ZEROS\n\
             [[boundary]]\nwhere = \"wall\"\npressure = 2\n{from}"
        )
    };
    for kind in KINDS {
        let mesh = halves(kind);
        let zeros = if mesh.dimension() == 2 { "[0, 0]" } else { "[0, 0, 0]" };
        for (from, sign) in [("left", -1.0), ("right", 1.0)] {
            let text = body(&format!("from = \"{from}\"\n")).replace("ZEROS", zeros);
            let found = solve_on(&mesh, &case(2, &text, FLUXES)).functionals;
            is_close(found["wall[0]"], 2.0 * sign, "wall");
            is_close(found["xmin[0]"], -sign, "xmin");
            is_close(found["left[0]"] + found["right[0]"], -2.0 * sign, "sides");
        }
        let (key, message) = refusal_on(&mesh, &case(2, &body("").replace("ZEROS", zeros), ""));
        assert!(key == "boundary[2].where" && message.contains("`from = "), "{key}: {message}");
    }
}

#[test]
fn a_tag_inside_and_outside_holds_on_both() {
    let mut mesh = halves(CellKind::Triangle);
    let ends: Vec<usize> =
        (0..mesh.facets.tags.len()).filter(|&facet| mesh.facets.tags[facet] == 2).collect();
    assert_eq!(ends.len(), 3);
    for facet in ends {
        mesh.facets.tags[facet] = WALL;
    }
    let held = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"wall\"\n";
    let functionals = "{ name = \"wall\", kind = \"flux\", where = \"wall\" }, { name = \"right\", kind = \"flux\", where = \"wall\", from = \"right\" }, \
        { name = \"max\", kind = \"max\" }";
    // 3 at x = 1 and at x = 2 flow to x = 0.
    let found = solve_on(&mesh, &case(2, &format!("{LAPLACE}{held}flux = \"3\"\n"), functionals));
    are_close(&found, &[("wall", 6.0), ("right", 0.0), ("max", 9.0)], "flux");
    let found = solve_on(&mesh, &case(2, &format!("{LAPLACE}{held}dirichlet = 4\n"), functionals));
    are_close(&found, &[("wall", 4.0), ("right", 0.0), ("max", 4.0)], "dirichlet");
}

#[test]
fn in_time_a_heated_wall_gives_its_flux() {
    let equation = format!(
        "{LAPLACE}capacity = 3\n[[boundary]]\nwhere = \"wall\"\nflux = \"6*t\"\n[time]\nend = 2\nsteps = 4\nmethod = \"crank-nicolson\"\n"
    );
    for kind in KINDS {
        let found = solve_on(&halves(kind), &case(1, &equation, "{ name = \"all\", kind = \"integral\" }"));
        is_close(found.functionals["all"], 4.0, &format!("{kind:?}"));
    }
}

#[test]
fn sides_without_meaning_are_refused_with_their_place() {
    let mesh = halves(CellKind::Triangle);
    let good = case(1, &format!("{LAPLACE}{ENDS}[[boundary]]\nwhere = \"wall\"\nflux = \"3\"\n"), FLUXES);
    solve_on(&mesh, &good);
    for (from, to, key, expected) in [
        ("flux = \"3\"", "flux = \"3*normal.normal\"", "boundary[2].where", "which differ on the two sides"),
        ("flux = \"3\"", "flux = \"3 + grad(u).grad(u)\"", "boundary[2].where", "on the gradient"),
        (
            "flux = \"3\"",
            "flux = \"3\"\nfrom = \"middle\"",
            "boundary[2].from",
            "no cell has the tag `middle`",
        ),
        (
            "dirichlet = 0\n",
            "dirichlet = 0\nfrom = \"right\"\n",
            "boundary[0].from",
            "no cell with the tag `right` has one",
        ),
        (
            "from = \"left\"",
            "from = \"middle\"",
            "output.functionals[1].from",
            "no cell has the tag `middle`",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let (found, message) = refusal_on(&mesh, &text);
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
    let mut alike = mesh.clone();
    alike.cell_tags.fill(1);
    let (key, message) = refusal_on(&alike, &good.replace("from = \"right\"", "from = \"left\""));
    assert!(
        key == "output.functionals[1].from" && message.contains("both cells of the facet at (1, "),
        "{key}: {message}"
    );
    let (key, message) =
        refusal_on(&mesh, &good.replacen("where = \"xmin\"", "nodes = \"x < 0.01\"\nfrom = \"left\"", 1));
    assert!(key == "boundary[0].from" && message.contains("nodes have no side"), "{key}: {message}");
}

#[test]
fn a_thickness_of_cells_makes_a_source_in_a_wall_one_of_a_side() {
    let mesh = halves(CellKind::Triangle);
    let source = |from: &str| {
        let wall = format!("[[boundary]]\nwhere = \"wall\"\n{from}flux = \"3\"\n");
        let text = case(1, &format!("{LAPLACE}{ENDS}{wall}"), FLUXES);
        text.replace("degree = 1", "degree = 1\nthickness = { by_tag = { left = 1, right = 2 } }")
    };
    let (key, message) = refusal_on(&mesh, &source(""));
    assert!(key == "boundary[2].where" && message.contains("as the thickness does"), "{key}: {message}");
    is_close(solve_on(&mesh, &source("from = \"right\"\n")).functionals["wall"], 6.0, "thickness 2");
}

#[test]
fn conditions_on_a_seam_of_three_sheets_are_refused() {
    let points = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.5], [-1.0, 0.5], [0.5, 0.5]];
    let points = points.iter().zip([0.0, 0.0, 0.0, 0.0, 1.0]).map(|(&[x, y], z)| [x, y, z]).collect();
    let mut mesh = Mesh::new(points, CellKind::Triangle, vec![0, 1, 2, 0, 1, 3, 0, 1, 4]).unwrap();
    mesh.tag_names.insert((1, WALL), "wall".into());
    mesh.facets.nodes = vec![0, 1, 1, 2];
    mesh.facets.tags = vec![WALL; 2];
    let text = |place: &str| {
        let held = format!("[[boundary]]\nwhere = \"{place}\"\ndirichlet = 0\n");
        case(1, &format!("{LAPLACE}source = 1\n{held}"), "")
    };
    let (key, message) = refusal_on(&mesh, &text("wall"));
    assert!(
        key == "boundary[0].where" && message.contains("1 facets of the tag have more than two"),
        "{key}: {message}"
    );
    mesh.facets.nodes = vec![0, 2, 1, 2];
    solve_on(&mesh, &text("wall"));
}
