//! Conductivities from fibres in case files.

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_mesh::Mesh;
use femtile_mesh::generate::{VentricleConfig, ventricle};

const VENTRICLE: &str = "[mesh]\ngenerate = { kind = \"ventricle\", h_mm = 3 }\n";
const OUTPUT: &str = "[output]\nvtu = false\nplot = false\nfunctionals = [{ name = \"energy\", kind = \"energy\" }, \
                      { name = \"max\", kind = \"max\" }]\n";

fn try_solve(text: &str) -> Result<Report, CaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::parse(&folder.path().join("case.toml"), text.into())?;
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent)
}

/// The key and the message of a refusal.
fn refusal(text: &str) -> (String, String) {
    match try_solve(text).unwrap_err() {
        CaseError::Input { key, message, .. } => (key.unwrap_or_default(), message),
        other => panic!("{other}"),
    }
}

fn energy(sigma: &str) -> f64 {
    let boundary = "[[boundary]]\nwhere = \"base\"\ndirichlet = \"x\"\n";
    let report = try_solve(&format!("{VENTRICLE}[equation]\nsigma = {sigma}\n{boundary}{OUTPUT}")).unwrap();
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    report.functionals["energy"]
}

#[test]
fn the_ventricle_conducts_along_its_fibres() {
    let fibres = |along: f64, across: f64| {
        energy(&format!("{{ fibre = \"fibre\", along = {along}, across = {across} }}"))
    };
    let (isotropic, both) = (energy("0.2"), fibres(0.2, 0.2));
    assert!((isotropic - both).abs() < 1e-8 * isotropic, "{isotropic} {both}");
    // The energy of prescribed values lies between those of the two conductivities.
    let between = fibres(2.0, 0.2);
    assert!(1.3 * isotropic < between && between < 7.0 * isotropic, "{isotropic} {between}");
    let domains =
        "{ fibre = \"fibre\", along = { intra = 4, extra = 4 }, across = { intra = 0.3, extra = 0.6 } }";
    assert!((energy(domains) - between).abs() < 1e-7 * between);
    let by_tag = "{ by_tag = { 0 = { fibre = \"fibre\", along = 2, across = 0.2 } } }";
    assert!((energy(by_tag) - between).abs() < 1e-7 * between);
}

#[test]
fn equations_in_time_diffuse_along_fibres() {
    let max = |diffusion: &str| {
        let time = "[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 4\n";
        let equation = format!(
            "[equation]\nkind = \"diffusion\"\ndiffusion = {diffusion}\ninitial = \"exp(-x^2 - y^2)\"\n"
        );
        try_solve(&format!("{VENTRICLE}{equation}{time}{OUTPUT}")).unwrap().functionals["max"]
    };
    let (isotropic, fibres) = (max("0.2"), max("{ fibre = \"fibre\", along = 0.2, across = 0.2 }"));
    assert!((isotropic - fibres).abs() < 1e-8, "{isotropic} {fibres}");
    assert!(max("{ fibre = \"fibre\", along = 0.2, across = 0.02 }") > 1.05 * isotropic);
}

#[test]
fn refusals_point_at_the_key() {
    let steady = "[equation]\nsource = 1\nlambda = 1\nsigma = ";
    let in_time =
        "[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 1\n[equation]\nkind = \"diffusion\"\ndiffusion = ";
    for (begin, key) in [(steady, "equation.sigma"), (in_time, "equation.diffusion")] {
        for (value, below, words) in [
            ("{ fibre = \"fibres\", along = 2, across = 1 }", ".fibre", "it has: fibre, transmural"),
            ("{ fibre = \"transmural\", along = 2, across = 1 }", ".fibre", "has 1 component"),
            ("{ fibre = \"fibre\", along = 2, across = -1 }", ".across", "has to be positive"),
            (
                "{ fibre = \"fibre\", along = { intra = 0, extra = 1 }, across = 1 }",
                ".along.intra",
                "has to be positive",
            ),
            (
                "{ fibre = \"fibre\", along = 2, across = 1, sheet = \"fibre\", normal = 3 }",
                ".sheet",
                "parallel",
            ),
        ] {
            let (found, message) = refusal(&format!("{VENTRICLE}{begin}{value}\n"));
            assert_eq!(found, format!("{key}{below}"), "{message}");
            assert!(message.contains(words), "{message}");
        }
    }
    for (value, words) in [
        ("{ fibre = \"fibre\", along = 2 }", "the key `across` is missing"),
        ("{ across = 2, along = 1 }", "the key `fibre` is missing"),
        ("{ fibre = \"fibre\", along = 2, across = 1, sheet = \"sheet\" }", "the key `normal` is missing"),
        ("{ fibre = \"fibre\", along = 2, across = 1, field = \"a\" }", "unknown key `field`"),
        ("{ intra = 2 }", "the key `extra` is missing"),
        ("{ fibre = \"fibre\", along = 2, acros = 1 }", "did you mean `across`"),
        ("{ fibre = 3, along = 2, across = 1 }", "text in quotes"),
        ("{ }", "{ fibre = …, along = …, across = … }"),
    ] {
        let text = format!("{VENTRICLE}[equation]\nsigma = {value}\n");
        let message = Case::parse(Path::new("case.toml"), text).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    let grid = "[mesh]\ngenerate = { kind = \"grid\", nodes = [9, 9] }\n[time]\nend = 1\nsteps = 2\n";
    let text = format!(
        "{grid}[equation]\nkind = \"diffusion\"\ninitial = 1\ndiffusion = {{ fibre = \"f\", along = 2, across = 1 }}\n"
    );
    assert_eq!(refusal(&text).0, "equation.diffusion");
}

#[test]
fn a_mesh_of_opencarp_is_scaled_and_solved_along_its_fibres() {
    let folder = tempfile::tempdir().unwrap();
    let mut heart = ventricle(&VentricleConfig { h_mm: 3.0 }).unwrap();
    heart.scale(1e3).unwrap();
    heart.cell_fields.remove("transmural");
    femtile_mesh::io::write(&folder.path().join("heart.pts"), &heart).unwrap();
    let text = |mesh: &str| {
        format!(
            "{mesh}[equation]\nsigma = {{ fibre = \"fibre\", along = 2, across = 0.2 }}\n\
             [[boundary]]\nwhere = \"base\"\ndirichlet = \"x\"\n{OUTPUT}"
        )
    };
    let solve = |text: String| {
        let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
        case.file.output.directory = folder.path().join("out");
        run(&case, &mut Silent)
    };
    let expected = solve(text(VENTRICLE)).unwrap().functionals["energy"];
    let found = solve(text("[mesh]\nfile = \"heart\"\nscale = 1e-3\n")).unwrap();
    assert!((found.functionals["energy"] - expected).abs() < 1e-6 * expected);
    assert!((found.mesh.volume * 1e9 / heart_volume(&heart) - 1.0).abs() < 1e-9);
    for scale in ["0", "-1", "inf"] {
        let text = text(&format!("[mesh]\nfile = \"heart.elem\"\nscale = {scale}\n"));
        match solve(text).unwrap_err() {
            CaseError::Input { key, message, .. } => {
                assert_eq!(key.as_deref(), Some("mesh.scale"));
                assert!(message.contains("positive"), "{message}");
            }
            other => panic!("{other}"),
        }
    }
}

fn heart_volume(mesh: &Mesh) -> f64 {
    (0..mesh.n_cells()).map(|cell| mesh.signed_measure(cell)).sum()
}
