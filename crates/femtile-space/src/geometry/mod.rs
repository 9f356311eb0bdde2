//! Geometry of quadrilateral and hexahedral cells: maps from the reference cell, quadrature, sides, tables at points.

mod cell_maps;
mod cell_rule;
mod metric_evaluation;
mod point_tables;
mod sides;

pub use cell_maps::{CellMap, CellMapBatch, CellMaps, LANES, along_all, determinant, inverse, set_normal};
pub use cell_rule::CellRule;
pub use metric_evaluation::MetricEvaluation;
pub use point_tables::{AtPoints, PointTables, along};
pub use sides::{Side, SideMap, Sides, product_table};
