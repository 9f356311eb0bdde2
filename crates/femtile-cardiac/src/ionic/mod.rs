//! Models of the membrane of a cell: states, rates, and their integration at many points.
