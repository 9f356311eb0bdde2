use femtile_mesh::CellKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::read::read;

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
    /// Hexahedra, which may be curved.
    Hexahedron,
}

/// Kinds of cell that a generator of plane meshes can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaneCellName {
    /// Two triangles a square.
    #[default]
    Triangle,
    /// Quadrilaterals, which may be curved.
    Quadrilateral,
}

/// Domains with a re-entrant corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LShapeName {
    /// The square from −1 to 1 without x > 0, y < 0.
    #[default]
    Plane,
    /// The same times 0 < z < 1.
    Extruded,
    /// The cube from −1 to 1 without x > 0, y < 0, z > 0: Fichera's corner.
    Corner,
}

/// A mesh made by formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Generator {
    /// A box of tetrahedra or hexahedra; tags xmin, xmax, ymin, ymax, zmin, zmax.
    Box {
        /// Number of cubes along x, y, z.
        #[schemars(inner(range(min = 1)))]
        cells: [usize; 3],
        /// Division of each cube.
        #[serde(default)]
        cell: CellName,
        /// Corner with the smallest coordinates.
        #[serde(default = "origin3")]
        lower: [f64; 3],
        /// Corner with the largest coordinates.
        #[serde(default = "ones3")]
        upper: [f64; 3],
        /// Displacement of the centre along each axis, relative to the side lengths of the box; the sides stay fixed.
        #[serde(default)]
        deform: f64,
        /// Degree of the shapes of hexahedra, 1 to 9.
        #[serde(default = "straight")]
        #[schemars(range(min = 1, max = 9))]
        order: usize,
    },
    /// A rectangle of triangles or quadrilaterals; tags xmin, xmax, ymin, ymax.
    Square {
        /// Number of squares along x, y.
        #[schemars(inner(range(min = 1)))]
        cells: [usize; 2],
        /// Division of each square.
        #[serde(default)]
        cell: PlaneCellName,
        /// Corner with the smallest coordinates.
        #[serde(default = "origin2")]
        lower: [f64; 2],
        /// Corner with the largest coordinates.
        #[serde(default = "ones2")]
        upper: [f64; 2],
        /// Displacement of the centre along each axis, relative to the side lengths of the rectangle; the sides stay fixed.
        #[serde(default)]
        deform: f64,
        /// Degree of the shapes of quadrilaterals, 1 to 9.
        #[serde(default = "straight")]
        #[schemars(range(min = 1, max = 9))]
        order: usize,
    },
    /// The nodes of a box, evenly spaced, for equations in time; tags xmin, xmax, ymin, ymax, zmin, zmax.
    Grid {
        /// Number of nodes along each of one to three axes, those on the sides included.
        #[schemars(length(min = 1, max = 3))]
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
        #[schemars(extend("exclusiveMinimum" = 0))]
        radius: f64,
        /// Length of an edge, about.
        #[schemars(extend("exclusiveMinimum" = 0))]
        h: f64,
        /// Kind of the cells: tetrahedron or hexahedron.
        #[serde(default)]
        cell: CellName,
        /// Degree of the shapes of hexahedra, 1 to 9.
        #[serde(default = "straight")]
        #[schemars(range(min = 1, max = 9))]
        order: usize,
    },
    /// The surface of a ball about the origin, of triangles or quadrilaterals, without a boundary.
    Sphere {
        /// Radius.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        radius: f64,
        /// Length of an edge, about.
        #[schemars(extend("exclusiveMinimum" = 0))]
        h: f64,
        /// Kind of the cells: triangle or quadrilateral.
        #[serde(default)]
        cell: PlaneCellName,
        /// Degree of the shapes of quadrilaterals, 1 to 9.
        #[serde(default = "straight")]
        #[schemars(range(min = 1, max = 9))]
        order: usize,
    },
    /// The space between two spheres about the origin, of hexahedra; tags inner, outer.
    Shell {
        /// Radius of the inner sphere.
        #[serde(default = "half")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        inner: f64,
        /// Radius of the outer sphere.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        outer: f64,
        /// Number of cells along an edge of each of the six blocks.
        #[schemars(range(min = 1))]
        cells: usize,
        /// Number of cells from the inner to the outer sphere.
        #[schemars(range(min = 1))]
        layers: usize,
        /// Degree of the shapes of cells, 1 to 9.
        #[serde(default = "straight")]
        #[schemars(range(min = 1, max = 9))]
        order: usize,
    },
    /// An L of quadrilaterals or hexahedra; tags xmin, xmax, ymin, ymax, in space zmin, zmax, and notch.
    LShape {
        /// Which part of the square or cube from -1 to 1 is there.
        #[serde(default)]
        shape: LShapeName,
        /// Number of cells along each side of length one.
        #[schemars(range(min = 1))]
        cells: usize,
    },
    /// A cylinder about the z axis; tags side, bottom, top.
    Cylinder {
        /// Radius.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        radius: f64,
        /// Height.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        height: f64,
        /// Length of an edge, about.
        #[schemars(extend("exclusiveMinimum" = 0))]
        h: f64,
    },
    /// An idealised left ventricle in millimetres; tags endocardium, epicardium, base; cell field fibre.
    Ventricle {
        /// Length of an edge, about, in millimetres.
        #[serde(default = "one")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        h_mm: f64,
    },
}

impl Generator {
    /// Returns the kind of the cells; none of a grid.
    pub(crate) fn cell_kind(&self) -> Option<CellKind> {
        let of_name = |cell: &CellName| match cell {
            CellName::Tetrahedron | CellName::Tetrahedron5 => CellKind::Tetrahedron,
            CellName::Hexahedron => CellKind::Hexahedron,
        };
        Some(match self {
            Self::Box { cell, .. } | Self::Ball { cell, .. } => of_name(cell),
            Self::Square { cell: PlaneCellName::Triangle, .. }
            | Self::Sphere { cell: PlaneCellName::Triangle, .. } => CellKind::Triangle,
            Self::Square { .. } | Self::Sphere { .. } | Self::LShape { shape: LShapeName::Plane, .. } => {
                CellKind::Quadrilateral
            }
            Self::Shell { .. } | Self::LShape { .. } => CellKind::Hexahedron,
            Self::Cylinder { .. } | Self::Ventricle { .. } => CellKind::Tetrahedron,
            Self::Grid { .. } => return None,
        })
    }

    /// Reads a generator as case files have it, such as `kind = "square", cells = [4, 4]`, in braces or not.
    ///
    /// # Errors
    /// A message with the key and what it needs.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text);
        let table = toml::from_str::<Table>(&format!("generate = {{ {inner} }}"));
        let table = table.map_err(|error| error.message().to_string())?;
        read(table["generate"].clone()).map_err(|refusal| refusal.text())
    }

    /// Reads a generator in JSON.
    ///
    /// # Errors
    /// As [`Generator::parse`].
    pub fn from_json(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        read(value).map_err(|refusal| refusal.text())
    }

    /// Returns `true` for a grid with one axis.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self, Self::Grid { nodes, .. } if nodes.len() == 1)
    }

    /// Number of nodes of a grid, in floating point as it may be large.
    pub(crate) fn n_grid_nodes(&self) -> Option<f64> {
        match self {
            Self::Grid { nodes, .. } => Some(nodes.iter().map(|&n| n as f64).product()),
            _ => None,
        }
    }
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

fn straight() -> usize {
    1
}

fn half() -> f64 {
    0.5
}

fn one() -> f64 {
    1.0
}
