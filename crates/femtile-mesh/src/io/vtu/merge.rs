//! Points that pieces share, and cells that several pieces have.

use rayon::prelude::*;

use super::read::{Grid, POINT};
use crate::io::collect::pick_in_place;

impl Grid<'_> {
    /// Merges points at the same place, unless a piece has two of them there, as on both sides of a slit.
    /// Then leaves out cells that an earlier piece has, and returns their number. Fields keep the values of
    /// the first of the points.
    pub(super) fn merge(&mut self) -> usize {
        let points = &self.points;
        let mut sorted: Vec<u32> = (0..points.len() as u32).collect();
        // Zeros of both signs are the same place.
        let key = |point: u32| points[point as usize].map(|x| (x + 0.0).to_bits());
        sorted.par_sort_unstable_by_key(|&point| (key(point), point));
        let piece = |point: u32| self.begins.partition_point(|begin| begin[0] <= point as usize);
        let mut first_of: Vec<u32> = (0..points.len() as u32).collect();
        let mut is_shared = vec![false; points.len()];
        for group in sorted.chunk_by(|&a, &b| key(a) == key(b)).filter(|group| group.len() > 1) {
            if group.windows(2).all(|pair| piece(pair[0]) != piece(pair[1])) {
                group.iter().for_each(|&point| first_of[point as usize] = group[0]);
                is_shared[group[0] as usize] = true;
            }
        }
        drop(sorted);
        let kept: Vec<u32> =
            (0..points.len() as u32).filter(|&point| first_of[point as usize] == point).collect();
        if kept.len() == points.len() {
            return 0;
        }
        self.connectivity.par_iter_mut().for_each(|point| *point = first_of[*point as usize]);
        let n_repeated = self.leave_out_repeated(&is_shared);
        let mut place_of = first_of;
        kept.iter().zip(0..).for_each(|(&point, place)| place_of[point as usize] = place);
        self.connectivity.par_iter_mut().for_each(|point| *point = place_of[*point as usize]);
        let n = self.points.len();
        // A field that a piece lacks is left out.
        self.point_data.retain(|_, field| field.values.len() == n * field.n_components);
        self.point_data.values_mut().for_each(|field| pick_in_place(&kept, field));
        self.points = kept.iter().map(|&point| self.points[point as usize]).collect();
        n_repeated
    }

    /// Turns cells of shared points alone that an earlier piece has into points, and returns their number.
    fn leave_out_repeated(&mut self, is_shared: &[bool]) -> usize {
        let mut candidates: Vec<(Vec<u32>, usize)> = Vec::new();
        let mut begin = 0;
        for (cell, &end) in self.ends.iter().enumerate() {
            let nodes = &self.connectivity[begin..end];
            begin = end;
            if self.types[cell] != POINT && nodes.iter().all(|&node| is_shared[node as usize]) {
                let mut nodes = nodes.to_vec();
                nodes.sort_unstable();
                candidates.push((nodes, cell));
            }
        }
        candidates.par_sort_unstable();
        let piece = |cell: usize| self.begins.partition_point(|begin| begin[1] <= cell);
        let mut n_repeated = 0;
        for copies in candidates.chunk_by(|a, b| a.0 == b.0) {
            let first = piece(copies[0].1);
            for &(_, cell) in copies.iter().filter(|(_, cell)| piece(*cell) != first) {
                self.types[cell] = POINT;
                n_repeated += 1;
            }
        }
        n_repeated
    }
}
