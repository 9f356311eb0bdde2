//! Solutions for the eye: surfaces and cuts of meshes, pictures of them, and pages.
//!
//! [`Body`] is a mesh of any kind and order with points; [`Body::surface`] and [`Body::cut`] return triangles with a value at
//! each corner, and [`picture`](fn@picture) draws them as a PNG file. [`Page`] is a report in one file for a browser.
#![forbid(unsafe_code)]

mod body;
mod colour;
mod cut;
mod error;
mod number;
mod page;
mod picture;
mod surface;
mod vector;

pub use body::Body;
pub use colour::{Colour, ColourMap};
pub use cut::Plane;
pub use error::ReportError;
pub use number::{short, significant};
pub use page::{
    ConditionRow, EquationPart, FormulaRow, FormulaTable, LevelRow, Page, Roofline, StudyPage, View, Work,
    bibtex,
};
pub use picture::{Panel, PictureConfig, panels, picture};
pub use surface::{Source, Surface};
