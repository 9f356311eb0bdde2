//! Elimination of a ring: the last unknown $w = u_{N-1}$ is eliminated as an additional column, and the last row as an additional row.
//!
//! $$ u_i + c^*_i u_{i+1} + q^*_i w = d^*_i, \qquad i < N-1 $$
//!
//! The column starts with $a_0$ and ends with $c_{N-2}$, the row with $c_{N-1}$ and $a_{N-1}$. All of it is
//! Gaussian elimination in the order of the rows, so it is as stable as that of open systems.

#[allow(unsafe_code)]
pub(super) mod cpu;
pub(super) mod reference;
