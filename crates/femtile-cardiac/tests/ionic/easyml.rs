//! Models in EasyML.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile_cardiac::CardiacError;
use femtile_cardiac::ionic::{Ionic, LocalScheme, Model, Points};

/// A squid-like axon with every construct: names in any order, marks, groups, conditions, gates of both forms.
const EASYML: &str = r"
// Voltage and current
V; .external(Vm); .nodal(); .lookup(-100, 100, 0.05);
Iion; .external(); .nodal();
V_init = -65.0; /* mV */

group {
  g_Na = 120.; .units(mS/cm^2);
  g_K = 36;
}.param();
g_L = 0.3; .param();
E_K = E_Na - 127; # a constant of constants
E_Na = 50;
Ko; .external(Ke);
Ko_init = 5.4;
kind = LONG; .flag(SHORT, LONG);
SHORT = 0; LONG = 1;

Iion = I_Na + I_K + g_L*(V + 54.4)*(kind == LONG ? 1 : 2) + 0*Ko*e;
I_Na = g_Na*cube(m)*h*(V - E_Na);
I_K = g_K*square(n)*square(n)*(V - E_K);

alpha_m = (fabs(V + 40) < 1e-6) ? 1 : 0.1*(V + 40)/(1 - exp(-(V + 40)/10));
beta_m = 4*exp(-(V + 65)/18);
a_h = 0.07*exp(-(V + 65)/20);
b_h = 1/(1 + exp(-(V + 35)/10));
h_init = 0.6;
n_inf = an/(an + bn);
tau_n = 1/(an + bn);
an = 0.01*(V + 55)/(1 - exp(-(V + 55)/10));
bn = 0.125*exp(-(V + 65)/80);

diff_Ca = -0.01*I_Na*slope - 0.1*Ca;
Ca_init = 0.25 + 0.25;
if (V > 0 and !(V > 20)) {
  slope = 2;
} elif (V > 20) {
  slope = 3;
} else {
  slope = -1.5e-1;
}
e = 2;
group { m; h; n; }.method(rush_larsen);
group { I_Na; V; }.trace();
";

/// The same as it is written by hand.
const TOML: &str = r#"
name = "axon"
[voltage]
name = "V"
initial = -65
current = "I_Na + 36*n^4*(V + 77) + 0.3*(V + 54.4)"
[definitions]
I_Na = "120*m^3*h*(V - 50)"
an = "0.01*(V + 55)/(1 - exp(-(V + 55)/10))"
bn = "0.125*exp(-(V + 65)/80)"
[gates.m]
initial = 0.05293248525724958
alpha = "1/exprel(-(V + 40)/10)"
beta = "4*exp(-(V + 65)/18)"
[gates.h]
initial = 0.6
alpha = "0.07*exp(-(V + 65)/20)"
beta = "1/(1 + exp(-(V + 35)/10))"
[gates.n]
initial = 0.3176769140606974
steady = "an/(an + bn)"
time_constant = "1/(an + bn)"
[states.Ca]
initial = 0.5
rate = "-0.01*I_Na*if(0 < V and V <= 20, 2, if(V > 20, 3, -0.15)) - 0.1*Ca"
"#;

/// Voltages and calcium over a spike.
fn spike(model: &Model) -> Vec<f64> {
    let cpu = Cpu::new(1).unwrap();
    let mut cell = Ionic::new(&cpu, model, LocalScheme::RushLarsen, Points::all(1)).unwrap();
    let mut v = Buffer::zeros(&cpu, 1).unwrap();
    cell.set_rest_voltage(&mut v).unwrap();
    let stimulus = Buffer::from_vec(&cpu, vec![30.0]).unwrap();
    let mut values = Vec::new();
    for step in 0..300 {
        cell.advance(&mut v, (step < 50).then_some(&stimulus), 0.02).unwrap();
        values.extend([v.as_slice()[0], cell.state("Ca").unwrap().unwrap()[0]]);
    }
    values
}

#[test]
fn a_translated_model_is_the_one_written_by_hand() {
    let (translated, own) = (Model::from_easyml(EASYML).unwrap(), Model::from_toml(TOML).unwrap());
    for state in own.states() {
        let found = &translated.states()[translated.position(state.name()).unwrap()];
        assert_eq!(found.is_gate(), state.is_gate(), "{}", state.name());
        assert!((found.initial() - state.initial()).abs() < 1e-14, "{}: {}", state.name(), found.initial());
    }
    assert_eq!(translated.n_states(), own.n_states());
    let (found, expected) = (spike(&translated), spike(&own));
    assert!(expected.iter().copied().fold(f64::MIN, f64::max) > 30.0, "no spike");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} {expected}");
    }
    assert_eq!(translated.with_constant("E_Na", 60.0).unwrap().constant("E_K"), Some(-67.0));
    // The translation is a description by itself.
    assert_eq!(spike(&Model::from_toml(translated.to_toml()).unwrap()), found);
}

#[test]
fn a_file_with_the_ending_of_opencarp_is_translated() {
    let path = std::env::temp_dir().join(format!("femtile-Axon-{}.model", std::process::id()));
    std::fs::write(&path, EASYML).unwrap();
    let model = Model::read(&path, None).unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(model.name().starts_with("femtile-axon"), "{}", model.name());
    assert_eq!(model.n_states(), 4);
}

#[test]
fn what_is_wrong_in_easyml_is_reported_with_its_place() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("V_init = -65.0;", "", "model:1:1", "`V_init`"),
        ("Ca_init = 0.25 + 0.25;", "", "model:1:1", "`Ca_init`"),
        ("E_Na = 50;", "E_Na = E_K;", "model:13:1", "depends on itself"),
        ("E_Na = 50;", "", "model:12:1", "`E_Na` has no value"),
        ("E_Na = 50;", "E_Na = 50; E_Na = 51;", "model:13:12", "a second value"),
        ("cube(m)*h*(V", "cube(m)*h*(V $", "model:20:26", "unexpected `$`"),
        ("} else {\n  slope = -1.5e-1;\n}", "}", "model:40:1", "needs `else`"),
        ("  slope = 3;", "  slop = 3;", "model:38:3", "no value in another branch"),
        ("square(n)*square(n)", "square(n*square(n)", "model:21:39", "expected `)`"),
        ("/* mV */", "/* mV", "model:5:17", "no end"),
        ("exp(-(V + 65)/80)", "expp(-(V + 65)/80)", "model:31:1", "`expp`"),
    ];
    let mut wrong = Vec::new();
    for (from, to, place, words) in cases {
        assert!(EASYML.contains(from), "{from}");
        let error = Model::from_easyml(&EASYML.replacen(from, to, 1)).expect_err(to);
        assert!(matches!(error, CardiacError::Model { .. }), "{error:?}");
        let error = error.to_string();
        if !error.starts_with(place) || !error.contains(words) {
            wrong.push(format!("{to}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn text_of_any_depth_is_refused_without_harm() {
    let deep = "(".repeat(100_000);
    let chain: String = (0..100_000).map(|i| format!("x{i} = x{};\n", i + 1)).collect();
    let blocks = "if (1 < 2) {".repeat(100_000);
    for text in [format!("a = {deep}"), format!("Iion = x0; V_init = 0; x100000 = 1;\n{chain}"), blocks] {
        assert!(Model::from_easyml(&text).is_err());
    }
}
