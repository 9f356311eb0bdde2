//! Positions of the unknowns of each entity in the tensor of a cell.

/// Entries of the tensors of a cell, `[components][(p + 1)^d]`, entity by entity.
#[derive(Debug)]
pub(super) struct Layout {
    /// Entries of each entity in the order of its rows, one entity after another.
    pub places: Vec<u32>,
    /// Start of each entity: `[3^d + 1]`.
    begins: Vec<usize>,
    /// Components of the field: a tensor each, and consecutive rows per node.
    pub components: usize,
    /// All entries in runs that are moved at once, by length.
    pub runs: RunsByLength,
}

/// Runs of each length: single loops over them take no decisions.
#[derive(Debug, Default)]
pub(super) struct RunsByLength {
    pub ones: Vec<Run<1>>,
    pub twos: Vec<Run<2>>,
    pub fours: Vec<Run<4>>,
    /// Others: as many rows as lanes, or the last five or more of an entity.
    pub others: Vec<LongRun>,
}

impl RunsByLength {
    /// Returns the number of runs.
    pub fn n(&self) -> usize {
        self.ones.len() + self.twos.len() + self.fours.len() + self.others.len()
    }
}

/// Consecutive rows of an entity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<const LEN: usize> {
    pub entity: usize,
    /// First row within the entity.
    pub begin: usize,
    /// Its entries.
    pub places: [u32; LEN],
}

/// Consecutive rows of an entity, at most as many as lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongRun {
    pub entity: usize,
    /// First row within the entity.
    pub begin: usize,
    /// Its entries begin here in [`Layout::places`].
    place: usize,
    len: usize,
}

impl Layout {
    pub fn new(degree: usize, d: usize, components: usize, lanes: usize) -> Self {
        let n = degree + 1;
        let mut layout =
            Self { places: Vec::new(), begins: vec![0], components, runs: RunsByLength::default() };
        for entity in 0..3usize.pow(d as u32) {
            let range = |axis: usize| match (axis < d, entity / 3usize.pow(axis as u32) % 3) {
                (false, _) | (true, 0) => 0..1,
                (true, 1) => 1..degree,
                _ => degree..n,
            };
            for z in range(2) {
                for y in range(1) {
                    let nodes = range(0).map(|x| x + n * (y + n * z));
                    layout.places.extend(nodes.flat_map(|node| {
                        (0..components).map(move |component| (component * n.pow(d as u32) + node) as u32)
                    }));
                }
            }
            layout.begins.push(layout.places.len());
            layout.add_runs(entity, lanes);
        }
        layout
    }

    /// Splits the rows of the last entity into runs.
    fn add_runs(&mut self, entity: usize, lanes: usize) {
        let (first, n_rows) = (self.begins[entity], self.len(entity));
        let mut begin = 0;
        while begin < n_rows {
            let place = first + begin;
            let len = match n_rows - begin {
                left if left >= lanes => lanes,
                3 => 2,
                left => left,
            };
            let runs = &mut self.runs;
            match self.places[place..place + len] {
                [one] => runs.ones.push(Run { entity, begin, places: [one] }),
                [a, b] => runs.twos.push(Run { entity, begin, places: [a, b] }),
                [a, b, c, d] => runs.fours.push(Run { entity, begin, places: [a, b, c, d] }),
                _ => runs.others.push(LongRun { entity, begin, place, len }),
            }
            begin += len;
        }
    }

    /// Returns the entries of a run.
    #[inline(always)]
    pub fn of(&self, run: &LongRun) -> &[u32] {
        &self.places[run.place..run.place + run.len]
    }

    /// Returns the number of entities.
    pub fn n_entities(&self) -> usize {
        self.begins.len() - 1
    }

    /// Returns the number of rows of an entity.
    pub fn len(&self, entity: usize) -> usize {
        self.begins[entity + 1] - self.begins[entity]
    }

    /// Returns the entries of an entity.
    pub fn places(&self, entity: usize) -> &[u32] {
        &self.places[self.begins[entity]..self.begins[entity + 1]]
    }
}
