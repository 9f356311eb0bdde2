//! Cells of higher order: from the numbering of a file to points in lexicographic order.

mod numbering;
mod serendipity;

pub(super) use numbering::Numbering;
pub(super) use serendipity::complete;
