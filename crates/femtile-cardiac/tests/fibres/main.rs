//! Rule-based fibres against shapes whose directions are known.

use femtile::mesh::generate::{BoxConfig, BoxSplit, VentricleConfig, box_mesh, ventricle};
use femtile::{Mesh, SolverConfig};
use femtile_cardiac::fibres::Fibres;
use femtile_cardiac::{CardiacError, RuleBasedFibres};

fn slab(split: BoxSplit) -> Mesh {
    let config = BoxConfig { cells: [4, 3, 7], upper: [3.0, 2.0, 1.0], split, ..BoxConfig::default() };
    box_mesh(&config).unwrap()
}

fn compute(rule: &RuleBasedFibres, mesh: &Mesh) -> Fibres {
    let config = SolverConfig { tolerance: 1e-12, ..SolverConfig::default() };
    let fibres = rule.compute(mesh, &config).unwrap();
    assert_eq!((fibres.fibre.len(), fibres.sheet.len()), (3 * mesh.n_cells(), 3 * mesh.n_cells()));
    for (fibre, sheet) in fibres.fibre.chunks(3).zip(fibres.sheet.chunks(3)) {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let found = [dot(fibre, fibre) - 1.0, dot(sheet, sheet) - 1.0, dot(fibre, sheet)];
        assert!(found.iter().all(|x| x.abs() < 1e-12), "{fibre:?} {sheet:?}");
    }
    fibres
}

fn middle(mesh: &Mesh, cell: usize) -> [f64; 3] {
    let nodes = mesh.cell(cell);
    [0, 1, 2].map(|axis| {
        nodes.iter().map(|&node| mesh.points[node as usize][axis]).sum::<f64>() / nodes.len() as f64
    })
}

/// The sine of the angle between lines.
fn sine(a: &[f64], b: [f64; 3]) -> f64 {
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    cross.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn angles_in_a_slab_are_exactly_linear_in_depth() {
    for split in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
        let mesh = slab(split);
        let rule = RuleBasedFibres::new("zmin", "zmax", "xmax").apex("xmin");
        for (helix, sheet) in [([60.0, -60.0], [-65.0, 25.0]), ([-20.0, 85.0], [0.0, 0.0])] {
            let rule = rule.clone().helix_angles(helix[0], helix[1]).sheet_angles(sheet[0], sheet[1]);
            let found = compute(&rule, &mesh);
            for cell in 0..mesh.n_cells() {
                let depth = middle(&mesh, cell)[2];
                let at = |[inner, outer]: [f64; 2]| ((1.0 - depth) * inner + depth * outer).to_radians();
                let (a, b) = (at(helix), at(sheet));
                // Through: z, along: x, around: x × z = −y.
                let fibre = [a.sin(), -a.cos(), 0.0];
                let sheet = [b.sin() * a.cos(), b.sin() * a.sin(), b.cos()];
                for i in 0..3 {
                    assert!((found.fibre[3 * cell + i] - fibre[i]).abs() < 1e-8, "{cell}: {fibre:?}");
                    assert!((found.sheet[3 * cell + i] - sheet[i]).abs() < 1e-8, "{cell}: {sheet:?}");
                }
                assert!((found.transmural[cell] - depth).abs() < 1e-10);
            }
            assert!(found.warnings.is_empty(), "{:?}", found.warnings);
            // Highest at the base, where the distance from it vanishes.
            let ends = [0, mesh.n_cells() - 1].map(|cell| middle(&mesh, cell)[0] < 1.5);
            assert!(
                found.apicobasal.iter().all(|height| (0.0..=1.0).contains(height)) && ends == [true, false]
            );
        }
    }
}

/// A wall bent round a cylinder, from radius 7 to 10: depth is logarithmic.
fn bent(n: usize) -> f64 {
    let config = BoxConfig { cells: [n, 2 * n, 2], ..BoxConfig::default() };
    let mut mesh = box_mesh(&config).unwrap();
    for point in &mut mesh.points {
        let (radius, angle, z) = (7.0 + 3.0 * point[0], 1.5 * point[1], 4.0 * point[2]);
        *point = [radius * angle.cos(), radius * angle.sin(), z];
    }
    let found = compute(&RuleBasedFibres::new("xmin", "xmax", "zmax").apex("zmin"), &mesh);
    let errors = (0..mesh.n_cells()).map(|cell| {
        let [x, y, _] = middle(&mesh, cell);
        let radius = x.hypot(y);
        let angle = (60.0 - 120.0 * (radius / 7.0).ln() / (10.0_f64 / 7.0).ln()).to_radians();
        let around = [-y / radius, x / radius];
        sine(
            &found.fibre[3 * cell..3 * cell + 3],
            [angle.cos() * around[0], angle.cos() * around[1], angle.sin()],
        )
    });
    errors.fold(0.0, f64::max).asin().to_degrees()
}

#[test]
fn angles_in_a_bent_wall_converge() {
    let [coarse, fine] = [4, 8].map(bent);
    assert!(coarse < 3.2 && coarse / fine > 1.9, "{coarse} {fine} degrees");
}

#[test]
fn fibres_of_the_ventricle_are_those_of_its_formula() {
    let mut mesh = ventricle(&VentricleConfig { h_mm: 0.75 }).unwrap();
    let exact = mesh.cell_fields.remove("fibre").unwrap().values;
    let depth = mesh.cell_fields.remove("transmural").unwrap().values;
    let found = compute(&RuleBasedFibres::new("endocardium", "epicardium", "base"), &mesh);
    let n = mesh.n_cells();
    let difference = |cell: usize, from: [f64; 3]| {
        sine(&found.fibre[3 * cell..3 * cell + 3], from).min(1.0).asin().to_degrees()
    };
    let of_formula = |cell: usize| difference(cell, [0, 1, 2].map(|i| exact[3 * cell + i]));
    // The formula takes the share of the semi-axes as depth, the rule a harmonic function.
    let of_depth =
        |cell: usize| difference(cell, formula(middle(&mesh, cell), depth[cell], found.transmural[cell]));
    let mean = |of: &dyn Fn(usize) -> f64| (0..n).map(of).sum::<f64>() / n as f64;
    let means = [mean(&of_formula), mean(&of_depth)];
    assert!(means[0] < 6.0 && means[1] < 1.6, "mean differences of {means:?} degrees");
    // At the walls, between apex and base, only the distance of the middle of a cell from the wall counts.
    let at_walls = (0..n)
        .filter(|&cell| (-8.0..4.0).contains(&middle(&mesh, cell)[2]))
        .filter(|&cell| depth[cell].min(1.0 - depth[cell]) < 0.1);
    let mut n_at_walls = 0;
    for cell in at_walls {
        n_at_walls += 1;
        let t = depth[cell].round();
        assert!(difference(cell, formula(middle(&mesh, cell), depth[cell], t)) < 14.0, "cell {cell}");
        assert!(of_depth(cell) < 3.0, "cell {cell}: {}", of_depth(cell));
    }
    assert!(n_at_walls > 1000, "{n_at_walls}");
    // The apex alone has no direction of its own.
    assert!(found.warnings.len() == 1 && found.warnings[0].contains("neighbours"), "{:?}", found.warnings);
}

/// The fibres of the generated ventricle at the depth `t` with the angle of another depth.
fn formula([x, y, z]: [f64; 3], t: f64, angle_at: f64) -> [f64; 3] {
    let [across, along] = [7.0 + 3.0 * t, 17.0 + 3.0 * t];
    let (sin_v, cos_v) = y.atan2(x).sin_cos();
    let (sin_u, cos_u) = (x.hypot(y) / across).atan2(z / along).sin_cos();
    let length = (across * cos_u).hypot(along * sin_u);
    let meridian = [-across * cos_u * cos_v, -across * cos_u * sin_v, along * sin_u];
    let (sin_a, cos_a) = (60.0 - 120.0 * angle_at).to_radians().sin_cos();
    let around = [-sin_v, cos_v, 0.0];
    [0, 1, 2].map(|i| cos_a * around[i] + sin_a * meridian[i] / length)
}

#[test]
fn units_and_rigid_motions_do_not_matter() {
    let mesh = ventricle(&VentricleConfig { h_mm: 3.0 }).unwrap();
    let rule = RuleBasedFibres::new("endocardium", "epicardium", "base");
    let found = compute(&rule, &mesh);
    let mut moved = mesh.clone();
    // x → y → z → x and micrometres.
    moved.points.iter_mut().for_each(|p| *p = [p[2], p[0], p[1]].map(|x| 1000.0 * x + 5e5));
    let of_moved = compute(&rule, &moved);
    // At the apex directions are arbitrary.
    for cell in (0..mesh.n_cells()).filter(|&cell| middle(&mesh, cell)[2] > -12.0) {
        let turned = [2, 0, 1].map(|i| found.fibre[3 * cell + i]);
        let difference = sine(&of_moved.fibre[3 * cell..3 * cell + 3], turned);
        assert!(difference < 1e-4, "cell {cell}: {difference:e}");
    }
}

/// Two ventricles in a plate: holes at x in 1..3 and 4..6 of a block with x in 0..7, y in 0..3; the septum lies between.
fn two_ventricles() -> Mesh {
    let block = box_mesh(&BoxConfig {
        cells: [28, 12, 3],
        upper: [7.0, 3.0, 1.5],
        split: BoxSplit::Hexahedron,
        ..BoxConfig::default()
    })
    .unwrap();
    let is_hole =
        |[x, y, _]: [f64; 3]| (1.0..2.0).contains(&y) && ((1.0..3.0).contains(&x) || (4.0..6.0).contains(&x));
    let cells = (0..block.n_cells()).filter(|&cell| !is_hole(middle(&block, cell)));
    let cells = cells.flat_map(|cell| block.cell(cell).to_vec()).collect();
    let mut mesh = Mesh::new(block.points.clone(), block.kind, cells).unwrap();
    femtile::mesh::check::check(&mut mesh, &femtile::mesh::check::CheckConfig::default()).unwrap();
    mesh
}

#[test]
fn the_septum_of_two_ventricles_continues_the_wall_of_the_left_one() {
    let mesh = two_ventricles();
    let inside = |x0: f64, x1: f64| format!("x > {x0} && x < {x1} && y > 0.99 && y < 2.01");
    let outside = "x < 1e-9 || x > 6.999 || y < 1e-9 || y > 2.999";
    let rule = RuleBasedFibres::new(inside(0.9, 3.1).as_str(), outside, "z > 1.499")
        .right_endocardium(inside(3.9, 6.1).as_str());
    let found = compute(&rule.sheet_angles(0.0, 0.0), &mesh);
    // In the middle of walls of thickness one, far from corners, the angle is linear in the distance.
    let angle_at = |near: [f64; 2]| {
        let distance = |cell: usize| {
            let [x, y, z] = middle(&mesh, cell);
            (x - near[0]).hypot(y - near[1]) + 1e-3 * (z - 0.75).abs()
        };
        let cell = (0..mesh.n_cells()).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap();
        let fibre = &found.fibre[3 * cell..3 * cell + 3];
        (middle(&mesh, cell), [fibre[0], fibre[1], fibre[2]])
    };
    // Through, seen outwards of the left ventricle in its wall and the septum, of the right one in its wall.
    for (x, through) in [(0.5, -1.0), (3.3, 1.0), (3.7, 1.0), (6.5, 1.0)] {
        let ([x, _, _], fibre) = angle_at([x, 1.5]);
        let depth = match x {
            x if x < 1.0 => 1.0 - x,
            x if x < 4.0 => x - 3.0,
            x => x - 6.0,
        };
        // Upwards z, through ±x: around is z × ±x = ±y.
        let expected = (60.0 - 120.0 * depth).to_radians();
        assert!(sine(&fibre, [0.0, through * expected.cos(), expected.sin()]) < 0.15, "x = {x}: {fibre:?}");
    }
    assert!(found.warnings.len() <= 1, "{:?}", found.warnings);
}

#[test]
fn wrong_parts_and_angles_are_refused() {
    let mesh = slab(BoxSplit::Kuhn);
    let said = |rule: &RuleBasedFibres, mesh: &Mesh| {
        let error: Option<CardiacError> = rule.compute(mesh, &SolverConfig::default()).err();
        error.expect("a refusal").to_string()
    };
    let rule = RuleBasedFibres::new("zmin", "zmax", "xmax");
    let missing = said(&RuleBasedFibres::new("endo", "zmax", "xmax"), &mesh);
    assert!(missing.starts_with("endocardium: ") && missing.contains("zmin"), "{missing}");
    assert!(said(&rule.clone().apex("tip"), &mesh).starts_with("apex: "));
    assert!(said(&rule.clone().helix_angles(f64::NAN, 0.0), &mesh).contains("helix_angles: NaN; degrees"));
    assert!(said(&RuleBasedFibres::new("zmin", "zmin", "xmax"), &mesh).contains("same part"));
    assert!(said(&rule.clone().apex("xmax"), &mesh).contains("base and apex are the same"));
    let flat = femtile::mesh::generate::square(&Default::default()).unwrap();
    assert!(said(&rule, &flat).contains("a mesh in space"));
}
