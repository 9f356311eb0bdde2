use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of cell that a generator can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellName {
    /// Six tetrahedra a cube, all sharing one diagonal (Kuhn).
    #[default]
    Tetrahedron,
    /// Five tetrahedra a cube, mirrored from cube to cube.
    #[serde(rename = "tetrahedron-5")]
    Tetrahedron5,
    /// Hexahedra; no equation is solved on them yet.
    Hexahedron,
}

/// A mesh made by formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Generator {
    /// A box of tetrahedra; tags xmin, xmax, ymin, ymax, zmin, zmax.
    Box {
        /// Number of cubes along x, y, z.
        cells: [usize; 3],
        /// How each cube is divided.
        #[serde(default)]
        cell: CellName,
        /// Corner with the smallest coordinates.
        #[serde(default = "origin3")]
        lower: [f64; 3],
        /// Corner with the largest coordinates.
        #[serde(default = "ones3")]
        upper: [f64; 3],
    },
    /// A rectangle of triangles; tags xmin, xmax, ymin, ymax.
    Square {
        /// Number of squares along x, y.
        cells: [usize; 2],
        /// Corner with the smallest coordinates.
        #[serde(default = "origin2")]
        lower: [f64; 2],
        /// Corner with the largest coordinates.
        #[serde(default = "ones2")]
        upper: [f64; 2],
    },
    /// The nodes of a box, evenly spaced, for equations in time; tags xmin, xmax, ymin, ymax, zmin, zmax.
    Grid {
        /// Number of nodes along each of one to three axes, those on the sides included.
        nodes: Vec<usize>,
        /// Corner with the smallest coordinates; the origin when absent.
        #[serde(default)]
        lower: Vec<f64>,
        /// Corner with the largest coordinates; all ones when absent.
        #[serde(default)]
        upper: Vec<f64>,
    },
    /// A ball about the origin; tag surface.
    Ball {
        /// Radius.
        #[serde(default = "one")]
        radius: f64,
        /// Length of an edge, about.
        h: f64,
    },
    /// A cylinder about the z axis; tags side, bottom, top.
    Cylinder {
        /// Radius.
        #[serde(default = "one")]
        radius: f64,
        /// Height.
        #[serde(default = "one")]
        height: f64,
        /// Length of an edge, about.
        h: f64,
    },
    /// An idealised left ventricle in millimetres; tags endocardium, epicardium, base; cell field fibre.
    Ventricle {
        /// Length of an edge, about, in millimetres.
        #[serde(default = "one")]
        h_mm: f64,
    },
}

fn origin3() -> [f64; 3] {
    [0.0; 3]
}

fn ones3() -> [f64; 3] {
    [1.0; 3]
}

fn origin2() -> [f64; 2] {
    [0.0; 2]
}

fn ones2() -> [f64; 2] {
    [1.0; 2]
}

fn one() -> f64 {
    1.0
}
