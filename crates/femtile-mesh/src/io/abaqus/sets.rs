//! Sets of nodes or elements: lists of numbers, ranges and other sets.

use std::collections::HashMap;
use std::ops::Range;

use super::line_origins::LineOrigins;
use super::lines::{Data, Keyword, Lines, Name, fields};
use super::model::Beside;
use crate::MeshError;
use crate::io::node_numbers::NodeNumbers;
use crate::io::number;
use crate::io::scanner::show;

/// Sets may hold sets that hold sets, this deep.
const DEEPEST: usize = 64;

/// All sets of one sort in the order of the file.
#[derive(Default)]
pub(super) struct Sets<'a> {
    pub sets: Vec<Set<'a>>,
    by_key: HashMap<String, usize>,
}

/// One set in the form of the file.
pub(super) struct Set<'a> {
    pub name: String,
    /// True if a program marked it as internal.
    pub is_internal: bool,
    /// Line that named it first.
    line: usize,
    parts: Vec<SetEntries<'a>>,
}

/// The part that one keyword adds to a set.
pub(super) enum SetEntries<'a> {
    /// Numbers and names of other sets, in a scope.
    List(Data<'a>, &'static str),
    /// Lines of first, last and step.
    Ranges(Data<'a>),
    /// Members in the order of the file: those that the keyword itself defines.
    Members(Range<u32>),
}

impl<'a> Sets<'a> {
    /// Adds to the set of this name in a scope; creates it if necessary.
    pub(super) fn add(
        &mut self,
        name: &Name,
        scope: &str,
        keyword: &Keyword<'_>,
        part: SetEntries<'a>,
    ) -> &mut Set<'a> {
        let key = format!("{scope}{}", name.key);
        let number = *self.by_key.entry(key).or_insert_with(|| {
            let (name, line) = (name.shown.clone(), keyword.line);
            self.sets.push(Set { name, is_internal: false, line, parts: Vec::new() });
            self.sets.len() - 1
        });
        let set = &mut self.sets[number];
        set.is_internal |= keyword.has("INTERNAL");
        set.parts.push(part);
        set
    }

    /// The set that a key names in a scope, or outside of it; `part.set` names the set of a part.
    pub(super) fn find(&self, key: &str, scope: &str) -> Option<usize> {
        let within = self.by_key.get(&format!("{scope}{key}")).or_else(|| self.by_key.get(key));
        let of_part = || self.by_key.get(key.split_once('.')?.1);
        within.or_else(of_part).copied()
    }
}

/// First, last and step of a line.
fn range(lines: &Lines<'_>, line: &[u8]) -> Result<[u32; 3], MeshError> {
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
    Ok(range)
}

/// Finds the members of sets, by their place in the file.
pub(super) struct Resolver<'a> {
    places: &'a LineOrigins,
    sets: &'a Sets<'a>,
    numbers: &'a NodeNumbers,
    n_entities: usize,
    /// `node` or `element`.
    what: &'static str,
    /// Elements that are left out, and may be members of sets.
    beside: Option<&'a Beside>,
    /// The first member that the file does not define.
    undefined: Option<String>,
    /// Remaining number of members and range steps to examine: bounds the memory caused by a short list.
    budget: usize,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        places: &'a LineOrigins,
        sets: &'a Sets<'a>,
        numbers: &'a NodeNumbers,
        n_entities: usize,
        what: &'static str,
        n_bytes: usize,
    ) -> Self {
        Self {
            places,
            sets,
            numbers,
            n_entities,
            what,
            beside: None,
            undefined: None,
            budget: 1024 + n_bytes,
        }
    }

    /// Takes elements that are left out as defined.
    pub(super) fn with_beside(self, beside: &'a Beside) -> Self {
        Self { beside: Some(beside), ..self }
    }

    /// The note about members of sets that the file does not define.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.undefined.as_ref()?;
        Some(format!(
            "{first}, which the file does not define; such members of sets and surfaces are left out"
        ))
    }

    /// Remembers the first member that the file does not define; `said` makes the message.
    pub(super) fn miss(&mut self, said: impl FnOnce(&'static str) -> String) {
        let what = self.what;
        self.undefined.get_or_insert_with(|| said(what));
    }

    /// Finds the node or element of a number; none if it is left out or not defined.
    pub(super) fn find(&mut self, number: u32, said: impl FnOnce(&'static str) -> String) -> Option<u32> {
        let found = self.numbers.find(number.into());
        if found.is_none() && !self.beside.is_some_and(|beside| beside.has(number)) {
            self.miss(said);
        }
        found
    }

    /// Members of a set, in ascending order.
    pub(super) fn members(&mut self, set: usize) -> Result<Vec<u32>, MeshError> {
        self.collect(set, 0)
    }

    fn collect(&mut self, number: usize, depth: usize) -> Result<Vec<u32>, MeshError> {
        let sets = self.sets;
        let set = &sets.sets[number];
        if depth > DEEPEST {
            let message = format!("the set `{}` holds sets within sets without end", set.name);
            return Err(self.places.error(set.line, message));
        }
        self.spend(1, number)?;
        let mut members: Vec<u32> = Vec::new();
        for part in &set.parts {
            match part {
                SetEntries::Members(range) => {
                    self.spend(range.len(), number)?;
                    members.extend(range.clone());
                }
                SetEntries::List(data, scope) => self.list(*data, scope, (number, depth), &mut members)?,
                SetEntries::Ranges(data) => self.ranges(*data, number, &mut members)?,
            }
        }
        members.sort_unstable();
        members.dedup();
        Ok(members)
    }

    fn list(
        &mut self,
        data: Data<'_>,
        scope: &str,
        (set, depth): (usize, usize),
        members: &mut Vec<u32>,
    ) -> Result<(), MeshError> {
        let mut lines = Lines::of(self.places, data);
        let sets = self.sets;
        let name = &sets.sets[set].name;
        while let Some(line) = lines.data() {
            for word in fields(line).filter(|word| !word.is_empty()) {
                self.spend(1, set)?;
                if number::integer(word).is_some() {
                    let wanted: u32 = lines.integer(word, "a member of a set")?;
                    let (places, line) = (self.places, lines.number());
                    let said =
                        |what: &str| format!("{}: the set `{name}` holds {what} {wanted}", places.show(line));
                    members.extend(self.find(wanted, said));
                    continue;
                }
                match self.sets.find(&Name::new(word).key, scope) {
                    Some(other) => members.extend(self.collect(other, depth + 1)?),
                    None => {
                        let (line, other) = (self.places.show(lines.number()), show(word));
                        self.miss(|_| format!("{line}: the set `{name}` holds a set `{other}`"));
                    }
                }
            }
        }
        Ok(())
    }

    fn ranges(&mut self, data: Data<'_>, set: usize, members: &mut Vec<u32>) -> Result<(), MeshError> {
        let mut lines = Lines::of(self.places, data);
        while let Some(line) = lines.data() {
            let [first, last, step] = range(&lines, line)?;
            let n_steps = ((last - first) / step) as usize + 1;
            self.spend(n_steps.min(self.n_entities) + 1, set)?;
            if n_steps <= self.n_entities {
                let numbers = (first..=last).step_by(step as usize);
                members.extend(numbers.filter_map(|wanted| self.numbers.find(wanted.into())));
                continue;
            }
            let [first, last, step] = [first, last, step].map(u64::from);
            let is_in =
                |number: u64| (first..=last).contains(&number) && (number - first).is_multiple_of(step);
            self.numbers.for_each(|number, entity| members.extend(is_in(number).then_some(entity)));
        }
        Ok(())
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
                Err(self.places.error(set.line, message))
            }
        }
    }
}
