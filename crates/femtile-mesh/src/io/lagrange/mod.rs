//! Cells of higher order: from the numbering of a file to points in lexicographic order.

mod numbering;
mod serendipity;

pub(super) use numbering::{Lattice, MISSING, Numbering, n_points, place};
pub(super) use serendipity::complete;
