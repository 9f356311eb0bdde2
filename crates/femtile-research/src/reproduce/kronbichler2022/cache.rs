//! A cache that holds what was used last.

/// Values of f64 in a line.
pub(super) const LINE: usize = 8;

const NONE: u32 = u32::MAX;

/// A fully associative write-back cache.
#[derive(Debug)]
pub(super) struct Cache {
    /// Neighbours of each line in the order of use, the later one first; an absent line is its own neighbour.
    links: Vec<[u32; 2]>,
    is_dirty: Vec<bool>,
    is_here: Vec<bool>,
    newest: u32,
    oldest: u32,
    free: usize,
    /// Lines fetched.
    pub reads: usize,
    /// Lines written back.
    pub writes: usize,
}

impl Cache {
    /// Room for `capacity` lines of memory that has `n_lines`.
    pub fn new(n_lines: usize, capacity: usize) -> Self {
        Self {
            links: vec![[NONE; 2]; n_lines],
            is_dirty: vec![false; n_lines],
            is_here: vec![false; n_lines],
            newest: NONE,
            oldest: NONE,
            free: capacity,
            reads: 0,
            writes: 0,
        }
    }

    /// Uses a line; what is written is fetched before, unless it is here.
    pub fn touch(&mut self, line: usize, is_written: bool) {
        if self.is_here[line] {
            self.unlink(line as u32);
        } else {
            self.reads += 1;
            match self.free {
                0 => self.give_up_oldest(),
                _ => self.free -= 1,
            }
            self.is_here[line] = true;
        }
        self.is_dirty[line] |= is_written;
        self.links[line] = [NONE, self.newest];
        match self.newest {
            NONE => self.oldest = line as u32,
            newest => self.links[newest as usize][0] = line as u32,
        }
        self.newest = line as u32;
    }

    fn unlink(&mut self, line: u32) {
        let [later, earlier] = self.links[line as usize];
        match later {
            NONE => self.newest = earlier,
            later => self.links[later as usize][1] = earlier,
        }
        match earlier {
            NONE => self.oldest = later,
            earlier => self.links[earlier as usize][0] = later,
        }
    }

    fn give_up_oldest(&mut self) {
        let line = self.oldest;
        self.unlink(line);
        self.is_here[line as usize] = false;
        if std::mem::take(&mut self.is_dirty[line as usize]) {
            self.writes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first_and_is_written_back_once() {
        let mut cache = Cache::new(4, 2);
        cache.touch(0, true);
        cache.touch(1, false);
        cache.touch(0, false);
        cache.touch(2, false);
        assert_eq!((cache.reads, cache.writes), (3, 0), "line 1 went");
        cache.touch(0, false);
        assert_eq!(cache.reads, 3, "line 0 stayed");
        cache.touch(3, false);
        cache.touch(1, false);
        assert_eq!((cache.reads, cache.writes), (5, 1), "line 0 went last, and was written");
    }
}
