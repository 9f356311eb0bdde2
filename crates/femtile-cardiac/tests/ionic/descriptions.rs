//! Descriptions of models, and what is said about bad ones.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile_cardiac::CardiacError;
use femtile_cardiac::ionic::{Ionic, LocalScheme, Model, Points};

const GOOD: &str = r#"name = "good"
source = ["fitzhugh1961"]
[units]
time_ms = 2
voltage_mv = [100, -80]
[voltage]
name = "V"
initial = "rest + 0"
current = "excitation - r*w"
[constants]
rest = 0.25
half = "rest/2"
r = "4*half"
[definitions]
excitation = """
  V*(V - half)
  *(V - 1)"""
[gates.w]
initial = 0.5
steady = "if(V < half, 1, 0)"
time_constant = "3"
[states.q]
initial = "half"
rate = "w - q"
[variants.slow]
title = "slow"
constants = { rest = 0.5 }
gates.w = { time_constant = "30" }
initial.q = 0.75
"#;

#[test]
fn constants_follow_those_that_they_are_made_of() {
    let model = Model::from_toml(GOOD).unwrap();
    assert_eq!((model.name(), model.n_states(), model.rest_voltage()), ("good", 2, 0.25));
    assert_eq!(model.constants().collect::<Vec<_>>(), [("rest", 0.25), ("half", 0.125), ("r", 0.5)]);
    assert_eq!(model.states().iter().map(|state| state.initial()).collect::<Vec<_>>(), [0.5, 0.125]);
    assert_eq!(model.units().voltage_mv, Some([100.0, -80.0]));
    let changed = model.with_constant("rest", 1.0).unwrap();
    assert_eq!((changed.constant("r"), changed.rest_voltage()), (Some(2.0), 1.0));
    let changed = changed.with_constant("half", 0.1).unwrap();
    assert_eq!((changed.constant("r"), changed.constant("rest")), (Some(0.4), Some(1.0)));
}

#[test]
fn variants_replace_values_and_formulas() {
    let model = Model::from_toml(GOOD).unwrap();
    assert_eq!(model.variants(), ["slow"]);
    let slow = model.with_variant("slow").unwrap();
    assert_eq!((slow.title().as_str(), slow.variant()), ("good (slow)", Some("slow")));
    assert_eq!((slow.constant("half"), slow.states()[1].initial()), (Some(0.25), 0.75));
    // An own value wins over that of the variant.
    let own = model.with_constant("rest", 2.0).unwrap().with_variant("slow").unwrap();
    assert_eq!(own.constant("half"), Some(1.0));
    let after = |model: &Model| {
        let cpu = Cpu::new(1).unwrap();
        let mut cells = Ionic::new(&cpu, model, LocalScheme::RushLarsen, Points::all(1)).unwrap();
        let mut v = Buffer::from_vec(&cpu, vec![2.0]).unwrap();
        cells.advance(&mut v, None, 3.0).unwrap();
        cells.state("w").unwrap().unwrap()[0]
    };
    assert!((after(&model) - 0.5 * (-1.0_f64).exp()).abs() < 1e-15);
    assert!((after(&slow) - 0.5 * (-0.1_f64).exp()).abs() < 1e-15);
}

#[test]
fn bad_descriptions_are_refused_with_the_place_and_the_names_there_are() {
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("excitation - r*w", "excitation - r*ww", "9:27", &["unknown name `ww`", "excitation"]),
        ("*(V - 1)\"", "*(V - W)\"", "17:9", &["`W`"]),
        ("half = \"rest/2\"", "half = \"r/2\"", "12:9", &["`r`", "rest"]),
        ("r = \"4*half\"", "V = 4", "13:1", &["`V` is given twice"]),
        ("rest = 0.25", "sin = 0.25", "11:1", &["`sin`", "a function"]),
        ("rest = 0.25", "femtile_x = 0.25", "11:1", &["reserved"]),
        ("rest = 0.25", "rest = true", "11:8", &["a number, or a formula"]),
        ("r = \"4*half\"", "r = \"4/0\"", "13:5", &["inf"]),
        ("time_constant = \"3\"", "tau = \"3\"", "21:1", &["`tau`", "`time_constant`"]),
        ("time_constant = \"3\"", "alpha = \"3\"", "18:8", &["the gate `w` needs"]),
        ("time_constant = \"3\"", "time_constant = \"V - 1\"", "21:18", &["time constant of `w`"]),
        ("rate = \"w - q\"", "rate = \"w/(q - half)\"", "24:9", &["the rate of `q`"]),
        ("time_ms = 2\n", "", "3:1", &["time_ms and voltage_mv or dimensionless"]),
        ("rest = 0.5 }", "rust = 0.5 }", "27:15", &["no constant `rust`", "half, r, rest"]),
        ("initial.q", "initial.p", "29:9", &["no variable `p`", "w, q, V"]),
        ("name = \"V\"", "name = \"V", "7:", &[]),
    ];
    assert!(Model::from_toml(GOOD).is_ok());
    let mut wrong = Vec::new();
    for (from, to, place, words) in cases {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = Model::from_toml(&text).expect_err(to);
        assert!(matches!(error, CardiacError::Model { .. }), "{error:?}");
        let error = error.to_string();
        let is_right =
            error.starts_with(&format!("model:{place}")) && words.iter().all(|word| error.contains(word));
        if !is_right {
            wrong.push(format!("{to}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unknown_models_variants_and_constants_are_refused_with_the_names_there_are() {
    let error = Model::named("luo-rudy").unwrap_err().to_string();
    assert!(error.contains("`luo-rudy`") && error.contains("fitzhugh-nagumo"), "{error}");
    let error = Model::named("ten-tusscher-panfilov-2006:apex").unwrap_err().to_string();
    assert!(error.contains("`apex`") && error.contains("epi, endo, m"), "{error}");
    let error = Model::named("aliev-panfilov:epi").unwrap_err().to_string();
    assert!(error.contains("no variants"), "{error}");
    let model = Model::named("aliev-panfilov").unwrap();
    let error = model.with_constant("mu_3", 1.0).unwrap_err().to_string();
    assert!(error.contains("`mu_3`") && error.contains("mu_1, mu_2"), "{error}");
    assert!(model.with_constant("c", f64::NAN).is_err());
}

#[test]
fn a_model_from_a_file_gives_the_bits_of_the_built_in_one() {
    let folder = std::env::temp_dir().join(format!("femtile-models-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in Model::names() {
        let path = folder.join(format!("{name}.toml"));
        std::fs::write(&path, Model::description_of(name).unwrap()).unwrap();
        let built_in = Model::named(name).unwrap();
        let variant = built_in.variants().last().map(|variant| (*variant).to_owned());
        let own = Model::read(&path, variant.as_deref()).unwrap();
        let built_in = variant.map_or(built_in.clone(), |variant| built_in.with_variant(&variant).unwrap());
        let run = |model: &Model| {
            let cpu = Cpu::new(1).unwrap();
            let mut cells = Ionic::new(&cpu, model, LocalScheme::RushLarsen2, Points::all(1)).unwrap();
            let mut v = Buffer::zeros(&cpu, 1).unwrap();
            cells.set_rest_voltage(&mut v).unwrap();
            v.as_mut_slice()[0] += 0.3;
            (0..100).for_each(|_| cells.advance(&mut v, None, 0.01).unwrap());
            (
                v.as_slice()[0].to_bits(),
                cells.states().parts().1.as_slice().iter().map(|s| s.to_bits()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(run(&own), run(&built_in), "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    let error = Model::read(std::path::Path::new("nowhere.toml"), None).unwrap_err().to_string();
    assert!(error.contains("nowhere.toml"), "{error}");
}

#[test]
fn built_in_models_have_titles_and_sources() {
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        assert_eq!(model.name(), name);
        assert!(!model.title().is_empty() && !model.citations().is_empty(), "{name}");
        for variant in model.variants() {
            assert!(model.with_variant(variant).unwrap().title().ends_with(')'), "{name}");
        }
    }
}

#[test]
fn values_that_are_no_numbers_are_reported_with_variable_and_node() {
    let cpu = Cpu::new(1).unwrap();
    let model = Model::named("aliev-panfilov").unwrap();
    let points = Points::listed(&cpu, 5, &[4, 1, 2]).unwrap();
    let mut cells = Ionic::new(&cpu, &model, LocalScheme::RushLarsen, points).unwrap();
    let mut v = Buffer::zeros(&cpu, 5).unwrap();
    cells.check(&v).unwrap();
    let mut states = cells.states().to_host().unwrap();
    assert_eq!(states.len(), cells.states().len());
    states[1] = f64::INFINITY;
    cells.set_states(&states).unwrap();
    let error = cells.check(&v).unwrap_err();
    assert!(
        matches!(&error, CardiacError::NotFinite { variable, node: 1, .. } if variable == "r"),
        "{error}"
    );
    v.as_mut_slice()[2] = f64::NAN;
    let error = cells.check(&v).unwrap_err();
    assert!(
        matches!(&error, CardiacError::NotFinite { variable, node: 2, .. } if variable == "V"),
        "{error}"
    );
    assert!(error.to_string().contains("shorten"), "{error}");
}

#[test]
fn bad_calls_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let model = Model::named("aliev-panfilov").unwrap();
    let mut cells = Ionic::new(&cpu, &model, LocalScheme::RushLarsen, Points::all(3)).unwrap();
    let mut v = Buffer::zeros(&cpu, 3).unwrap();
    for dt in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(cells.advance(&mut v, None, dt).is_err(), "{dt}");
    }
    let mut short = Buffer::zeros(&cpu, 2).unwrap();
    assert!(cells.advance(&mut short, None, 0.1).is_err());
    assert!(cells.advance(&mut v, Some(&short), 0.1).is_err());
    assert!(cells.set_rest_voltage(&mut short).is_err() && cells.check(&short).is_err());
    assert!(cells.set_states(&[0.0]).is_err());
    assert!(cells.state("s").unwrap().is_none());
    for list in [&[0, 1, 0][..], &[3]] {
        assert!(Points::listed(&cpu, 3, list).is_err(), "{list:?}");
    }
}
