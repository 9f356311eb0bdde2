//! Sets of nodes or elements: lists of numbers, ranges and other sets.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::lines::{Keyword, Lines, Name, error_at, fields};
use crate::MeshError;
use crate::io::node_numbers::NodeNumbers;
use crate::io::number;
use crate::io::scanner::show;

/// Sets may hold sets that hold sets, this deep.
const DEEPEST: usize = 64;

/// All sets of one sort in the order of the file.
#[derive(Default)]
pub(super) struct Sets {
    pub sets: Vec<Set>,
    by_key: HashMap<String, usize>,
}

/// One set as the file has it.
pub(super) struct Set {
    pub name: String,
    /// Whether a program made it for its own use.
    pub is_internal: bool,
    /// Line that named it first.
    line: usize,
    numbers: Vec<u32>,
    /// First, last and step of numbers.
    ranges: Vec<[u32; 3]>,
    /// Other sets by their keys.
    others: Vec<String>,
    /// Members in the order of the file, of which the keyword that defines them says the set.
    members: Vec<Range<u32>>,
}

impl Sets {
    /// The set of this name in a scope, made where there is none.
    pub(super) fn entry(&mut self, name: &Name, scope: &str, keyword: &Keyword<'_>) -> &mut Set {
        let key = format!("{scope}{}", name.key);
        let number = *self.by_key.entry(key).or_insert_with(|| {
            self.sets.push(Set {
                name: name.shown.clone(),
                is_internal: false,
                line: keyword.line,
                numbers: Vec::new(),
                ranges: Vec::new(),
                others: Vec::new(),
                members: Vec::new(),
            });
            self.sets.len() - 1
        });
        let set = &mut self.sets[number];
        set.is_internal |= keyword.has("INTERNAL");
        set
    }

    /// The set that a key names in a scope, or outside of it; `part.set` names the set of a part.
    pub(super) fn find(&self, key: &str, scope: &str) -> Option<usize> {
        let within = self.by_key.get(&format!("{scope}{key}")).or_else(|| self.by_key.get(key));
        let of_part = || self.by_key.get(key.split_once('.')?.1);
        within.or_else(of_part).copied()
    }
}

impl Set {
    /// Adds members by their place in the file.
    pub(super) fn add(&mut self, members: Range<u32>) {
        self.members.push(members);
    }

    /// Reads the lines of data of `*NSET` or `*ELSET`.
    pub(super) fn read(
        &mut self,
        lines: &mut Lines<'_>,
        is_generated: bool,
        scope: &str,
    ) -> Result<(), MeshError> {
        while let Some(line) = lines.data() {
            if is_generated {
                let mut range = [0, 0, 1];
                let mut n = 0;
                for word in fields(line) {
                    let Some(slot) = range.get_mut(n) else {
                        return Err(lines.error("a range of a set has a first, a last and a step"));
                    };
                    *slot = lines.integer(word, "a number of a range")?;
                    n += 1;
                }
                if n < 2 || range[2] == 0 || range[1] < range[0] {
                    let message = format!("`{}` is no range: first, last and a step are needed", show(line));
                    return Err(lines.error(message));
                }
                self.ranges.push(range);
                continue;
            }
            for word in fields(line).filter(|word| !word.is_empty()) {
                match number::integer(word) {
                    Some(_) => self.numbers.push(lines.integer(word, "a member of a set")?),
                    None => self.others.push(format!("{scope}\0{}", Name::new(word).key)),
                }
            }
        }
        Ok(())
    }
}

/// Finds the members of sets, by their place in the file.
pub(super) struct Resolver<'a> {
    path: &'a Path,
    sets: &'a Sets,
    numbers: &'a NodeNumbers,
    n_entities: usize,
    /// `node` or `element`.
    what: &'static str,
    /// Members and steps of ranges that may still be looked at: a short list must not stand for much memory.
    budget: usize,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        path: &'a Path,
        sets: &'a Sets,
        numbers: &'a NodeNumbers,
        n_entities: usize,
        what: &'static str,
        n_bytes: usize,
    ) -> Self {
        Self { path, sets, numbers, n_entities, what, budget: 1024 + n_bytes }
    }

    /// Members of a set, in ascending order.
    pub(super) fn members(&mut self, set: usize) -> Result<Vec<u32>, MeshError> {
        self.collect(set, 0)
    }

    fn collect(&mut self, number: usize, depth: usize) -> Result<Vec<u32>, MeshError> {
        let set = &self.sets.sets[number];
        let fail = |message: String| error_at(self.path, set.line, message);
        if depth > DEEPEST {
            return Err(fail(format!("the set `{}` holds sets within sets without end", set.name)));
        }
        self.spend(1, number)?;
        let mut members: Vec<u32> = Vec::new();
        for range in &set.members {
            self.spend(range.len(), number)?;
            members.extend(range.clone());
        }
        self.spend(set.numbers.len(), number)?;
        for &wanted in &set.numbers {
            members.push(self.numbers.find(wanted.into()).ok_or_else(|| {
                let (name, what) = (&set.name, self.what);
                fail(format!("the set `{name}` holds {what} {wanted}, which the file does not define"))
            })?);
        }
        for &[first, last, step] in &set.ranges {
            let n_steps = ((last - first) / step) as usize + 1;
            self.spend(n_steps.min(self.n_entities), number)?;
            if n_steps <= self.n_entities {
                let numbers = (first..=last).step_by(step as usize);
                members.extend(numbers.filter_map(|wanted| self.numbers.find(wanted.into())));
            } else {
                let is_in = |number: u64| {
                    (u64::from(first)..=u64::from(last)).contains(&number)
                        && (number - u64::from(first)).is_multiple_of(step.into())
                };
                self.numbers.for_each(|number, entity| members.extend(is_in(number).then_some(entity)));
            }
        }
        for other in &set.others {
            let (scope, key) = other.split_once('\0').unwrap_or(("", other));
            let Some(other) = self.sets.find(key, scope) else {
                return Err(fail(format!(
                    "the set `{}` holds a set `{key}`, which the file does not define",
                    set.name
                )));
            };
            members.extend(self.collect(other, depth + 1)?);
        }
        members.sort_unstable();
        members.dedup();
        Ok(members)
    }

    /// Takes `n` from the budget.
    fn spend(&mut self, n: usize, set: usize) -> Result<(), MeshError> {
        match self.budget.checked_sub(n) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                let set = &self.sets.sets[set];
                let message = format!(
                    "the set `{}` and those before it are longer than such a file can need",
                    set.name
                );
                Err(error_at(self.path, set.line, message))
            }
        }
    }
}
