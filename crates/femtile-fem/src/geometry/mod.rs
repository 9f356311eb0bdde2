//! Geometry of quadrilateral and hexahedral cells: maps from the reference cell, quadrature, sides, tables at points.

mod cell_maps;
mod cell_rule;
mod metric_evaluation;
pub(crate) mod point_tables;
mod sides;

pub use cell_maps::{CellMap, CellMaps, along_all, determinant, inverse};
pub(crate) use cell_maps::{CellMapBatch, LANES};
pub use cell_rule::CellRule;
pub use metric_evaluation::MetricEvaluation;
pub(crate) use sides::{Side, Sides, product_table};
