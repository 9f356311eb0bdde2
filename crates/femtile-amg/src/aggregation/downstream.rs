//! The order in which a flow meets the rows of a matrix.

use std::collections::VecDeque;

use super::couplings::Couplings;
use crate::setup::rows::RowAccess;

/// Classes of upstream weight, up to the diagonal entry.
const N_CLASSES: usize = 64;
/// Smaller shares of the diagonal entry are rounding.
const ROUNDED: f64 = 1e-9;

/// Returns the rows in downstream order, for positive diagonal entries.
///
/// Row j is upstream of row i with the weight $\max(0, |a_{ij}| - |a_{ji}|) / a_{ii}$. The next row is always one of
/// those with the least weight left upstream, in classes of 1/62 of the diagonal entry, the first that has come into its class.
/// So cycles of the flow are cut where they are weakest, and a symmetric matrix keeps its order.
///
/// Sizes of entries decide. The skew part $a_{ij} - a_{ji}$ in their place takes about as many iterations.
///
/// # Cost
/// Two passes over the matrix; a row enters the queue of a class when its weight changes class.
pub(super) fn downstream_order(couplings: &Couplings, diagonal: &[f64]) -> Vec<u32> {
    let n = couplings.a.n_rows();
    let upstream = |own: f64, mirror: f64| (own.abs() - mirror.abs()).max(0.0);
    let weight_of = |i: usize| {
        let others = couplings.row(i).filter(|&(j, ..)| j != i);
        others.map(|(_, own, mirror)| upstream(own, mirror)).sum::<f64>() / diagonal[i]
    };
    let mut left: Vec<f64> = (0..n).map(weight_of).collect();
    let mut class: Vec<u8> = left.iter().map(|&left| class_of(left)).collect();
    let mut queues = vec![VecDeque::new(); N_CLASSES];
    (0..n).for_each(|i| queues[class[i] as usize].push_back(i as u32));
    let (mut order, mut is_done, mut lowest) = (Vec::with_capacity(n), vec![false; n], 0);
    while order.len() < n {
        let Some(next) = queues[lowest].pop_front() else {
            lowest += 1;
            continue;
        };
        let i = next as usize;
        // Rows whose class has changed remain in the queue of the former one.
        if is_done[i] || class[i] as usize != lowest {
            continue;
        }
        is_done[i] = true;
        order.push(next);
        for (j, own, mirror) in couplings.row(i) {
            let weight = upstream(mirror, own);
            if weight > 0.0 && !is_done[j] {
                left[j] -= weight / diagonal[j];
                let to = class_of(left[j]);
                if to != std::mem::replace(&mut class[j], to) {
                    queues[to as usize].push_back(j as u32);
                    lowest = lowest.min(to as usize);
                }
            }
        }
    }
    order
}

/// Returns the class of an upstream weight, 0 for none.
fn class_of(weight: f64) -> u8 {
    if weight <= ROUNDED {
        0
    } else {
        (1 + (weight * (N_CLASSES - 2) as f64) as usize).min(N_CLASSES - 1) as u8
    }
}
