//! Points that pieces share, and cells that several pieces have.

use femtile_device::parallel;

use super::read::{Grid, POINT};
use crate::alike::for_each_alike;
use crate::io::collect::pick;

impl Grid<'_> {
    /// Merges points at the same place, unless a piece has two of them there, as on both sides of a slit.
    /// Then leaves out cells that an earlier piece has, and returns their number. Fields keep the values of
    /// the first of the points.
    pub(super) fn merge(&mut self) -> usize {
        let points = &self.points;
        // Zeros of both signs are the same place.
        let bits = |point: u32| points[point as usize].map(|x| (x + 0.0).to_bits());
        let key = |point: u32| {
            let [x, y, z] = bits(point).map(|bits| [bits as u32, (bits >> 32) as u32]);
            [x[0], x[1], y[0], y[1], z[0], z[1], 0, 0]
        };
        let piece = |point: u32| self.begins.partition_point(|begin| begin[0] <= point as usize);
        let mut first_of: Vec<u32> = (0..points.len() as u32).collect();
        let mut is_shared = vec![false; points.len()];
        for_each_alike(points.len(), &key, &mut |group| {
            if group.windows(2).all(|pair| piece(pair[0]) != piece(pair[1])) {
                group.iter().for_each(|&point| first_of[point as usize] = group[0]);
                is_shared[group[0] as usize] = true;
            }
        });
        let kept: Vec<u32> =
            (0..points.len() as u32).filter(|&point| first_of[point as usize] == point).collect();
        if kept.len() == points.len() {
            return 0;
        }
        let replace = |point: &mut u32| *point = first_of[*point as usize];
        parallel::for_each_mut(&mut self.connectivity, parallel::CHEAP, replace);
        let n_repeated = self.leave_out_repeated(&is_shared);
        let mut place_of = first_of;
        kept.iter().zip(0..).for_each(|(&point, place)| place_of[point as usize] = place);
        let replace = |point: &mut u32| *point = place_of[*point as usize];
        parallel::for_each_mut(&mut self.connectivity, parallel::CHEAP, replace);
        let n = self.points.len();
        // A field that a piece lacks is left out.
        self.point_data.retain(|_, field| field.values.len() == n * field.n_components);
        self.point_data.values_mut().for_each(|field| pick(&kept, field));
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
        candidates.sort_unstable();
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
