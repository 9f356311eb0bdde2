/// A finding that makes the check refuse a mesh unless it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Two cells have the same nodes.
    DuplicateCells,
    /// A facet belongs to more than two cells.
    SharedFacet,
    /// Two cells share a facet and lie on the same side of it.
    FoldedCells,
    /// Two boundary facets cover each other in part.
    OverlappingFacets,
    /// Thin gaps lie side by side.
    Gap,
}

impl Finding {
    /// All findings that may be accepted.
    pub const ALL: [Self; 5] =
        [Self::DuplicateCells, Self::SharedFacet, Self::FoldedCells, Self::OverlappingFacets, Self::Gap];

    /// The name in case files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateCells => "duplicate-cells",
            Self::SharedFacet => "shared-facet",
            Self::FoldedCells => "folded-cells",
            Self::OverlappingFacets => "overlapping-facets",
            Self::Gap => "gap",
        }
    }
}
