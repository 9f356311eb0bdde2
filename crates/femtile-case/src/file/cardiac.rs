use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[membrane]`: the membranes of cells, with `kind = "monodomain"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MembraneSection {
    /// The model: `aliev-panfilov`, `mitchell-schaeffer`, `fitzhugh-nagumo`, `ten-tusscher-panfilov-2006`,
    /// `courtemanche-ramirez-nattel-1998`, with a variant after a colon (`ten-tusscher-panfilov-2006:endo`), or a file that ends
    /// in `.toml` or `.model` (EasyML), relative to the folder of the case file.
    pub model: String,
    /// Constants of the model that have other values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// Surface of membranes in a volume of tissue, χ, in 1/mm; 140 when absent, or 1 with a dimensionless model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface_to_volume: Option<f64>,
    /// Capacitance of a surface of membrane, C_m, in µF/mm²; 0.01 when absent, or 1 with a dimensionless model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacitance: Option<f64>,
    /// The integration of the membrane.
    #[serde(default)]
    pub integration: IntegrationName,
    /// The numbers that gates are stored as, with splitting.
    #[serde(default)]
    pub gates: GatesName,
    /// Other models for cells with a tag; nodes on the border of several regions belong to the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<MembraneRegion>,
}

/// A `[[membrane.region]]`: another model for some cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MembraneRegion {
    /// The tag of the cells, by name or number.
    pub cells: String,
    /// The model, as in `[membrane]`.
    pub model: String,
    /// Constants of the model that have other values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
}

/// Integration of membranes in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntegrationName {
    /// Gates by their exact exponential for the potential at the begin of a step, all else by forward Euler: order 1.
    #[default]
    RushLarsen,
    /// The same with values at the middle of a step: order 2.
    RushLarsen2,
    /// Forward Euler for all states.
    Explicit,
}

/// Numbers that gates of membranes are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GatesName {
    /// 64 bits, as all other states.
    #[default]
    Double,
    /// 32 bits: the potential changes by less than 0.001 mV, and a GPU takes less than half the time for the membrane.
    Single,
}

/// A `[[stimulus]]`: a current into a part of the tissue; exactly one of `box`, `sphere`, `tag` and `where`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["box"] }, { "required": ["sphere"] }, { "required": ["tag"] }, { "required": ["where"] }
]))]
pub struct StimulusSection {
    /// Two opposite corners of a box with sides along the axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#box: Option<[[f64; 3]; 2]>,
    /// A ball.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sphere: Option<SphereSection>,
    /// The nodes of cells, or else of boundary facets, with this tag, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A comparison such as `x < 1.5` that holds at the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#where: Option<String>,
    /// The current density in µA/mm³, or the rate of the potential of a dimensionless model; positive where it depolarises.
    pub strength: f64,
    /// The time of the first pulse.
    #[serde(default)]
    pub start: f64,
    /// The length of a pulse.
    pub duration: f64,
    /// The distance from the begin of a pulse to that of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<f64>,
    /// The number of pulses.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: usize,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// A ball.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SphereSection {
    /// Its centre.
    pub centre: [f64; 3],
    /// Its radius.
    pub radius: f64,
}

/// `[activation]`: what counts as activated and repolarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivationSection {
    /// The potential whose upward crossing is an activation; that of the model when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The share of the amplitude that is lost at repolarisation: 0.9 for APD₉₀.
    #[serde(default = "repolarised")]
    pub repolarised: f64,
}

fn repolarised() -> f64 {
    0.9
}

/// `[ecg]`: pseudo-ECG, potentials over time in an infinite medium.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EcgSection {
    /// The conductivity of the medium, in mS/mm.
    #[serde(default = "bath")]
    pub conductivity: f64,
    /// The position of each electrode by its name.
    pub electrodes: BTreeMap<String, [f64; 3]>,
}

fn bath() -> f64 {
    1.0
}
