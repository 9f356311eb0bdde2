use femtile_mesh::check::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Findings of the mesh check that may be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingName {
    /// Two cells have the same nodes; both count.
    DuplicateCells,
    /// A facet belongs to more than two cells.
    SharedFacet,
    /// Two cells share a facet and lie on the same side of it.
    FoldedCells,
    /// Two boundary facets cover each other in part; nothing flows between them.
    OverlappingFacets,
    /// Thin gaps lie side by side; nothing flows through them.
    Gap,
}

impl From<FindingName> for Finding {
    fn from(name: FindingName) -> Self {
        match name {
            FindingName::DuplicateCells => Self::DuplicateCells,
            FindingName::SharedFacet => Self::SharedFacet,
            FindingName::FoldedCells => Self::FoldedCells,
            FindingName::OverlappingFacets => Self::OverlappingFacets,
            FindingName::Gap => Self::Gap,
        }
    }
}
