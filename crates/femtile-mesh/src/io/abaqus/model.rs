//! The content of a file, keyword by keyword, before it is resolved.

use std::collections::BTreeSet;

use super::element_type::ElementType;
use super::line_origins::LineOrigins;
use super::lines::{Data, Keyword, Lines, Name, fields};
use super::sets::{SetEntries, Sets};
use crate::MeshError;
use crate::io::scanner::show;

/// Scope of a keyword.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Scope {
    /// In a part, or in a file without parts.
    #[default]
    Part,
    Assembly,
    Instance,
}

/// Elements of one type, one after another.
pub(super) struct Block {
    pub kind: ElementType,
    /// Number of elements of this and the blocks before.
    pub end: usize,
}

/// A surface: a name, and sides of elements or nodes.
pub(super) struct Surface<'a> {
    pub name: String,
    pub line: usize,
    pub is_of_nodes: bool,
    scope: &'static str,
    pub places: &'a LineOrigins,
    data: Data<'a>,
}

/// One line of a surface: an element, a node or a set of them, and the side.
pub(super) struct SurfacePart<'a> {
    /// Key of a set, or a number.
    pub of: String,
    pub scope: &'static str,
    pub side: &'a [u8],
}

impl<'a> Surface<'a> {
    /// The lines of the surface.
    pub(super) fn parts(&self) -> impl Iterator<Item = SurfacePart<'a>> {
        let mut lines = Lines::of(self.places, self.data);
        let scope = self.scope;
        std::iter::from_fn(move || {
            let mut words = fields(lines.data()?);
            let of = Name::new(words.next().unwrap_or_default()).key;
            Some(SurfacePart { of, scope, side: words.next().unwrap_or_default() })
        })
    }
}

/// Elements beside the mesh, such as masses and springs, which are left out.
#[derive(Default)]
pub(super) struct Beside {
    /// Names of their types.
    pub types: BTreeSet<String>,
    /// Names of types of beams, which are tagged lines in the plane and left out beside solids.
    pub beams: BTreeSet<String>,
    /// First numbers of their lines, ascending once all are read.
    numbers: Vec<u32>,
}

impl Beside {
    /// Returns whether an element is one of them.
    pub(super) fn has(&self, number: u32) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }
}

/// The content of a file.
#[derive(Default)]
pub(super) struct Model<'a> {
    pub points: Vec<[f64; 3]>,
    pub point_numbers: Vec<u64>,
    pub element_numbers: Vec<u64>,
    pub blocks: Vec<Block>,
    /// Numbers of the nodes of all elements.
    pub element_nodes: Vec<u32>,
    pub node_sets: Sets<'a>,
    pub element_sets: Sets<'a>,
    /// Sets of elements that a section names, with their scope: those of a material.
    pub sections: Vec<(String, &'static str)>,
    pub surfaces: Vec<Surface<'a>>,
    pub beside: Beside,
    scope: Scope,
    n_parts: usize,
    n_instances: usize,
    translation: [f64; 3],
}

impl<'a> Model<'a> {
    pub(super) fn read(places: &'a LineOrigins, bytes: &'a [u8]) -> Result<Self, MeshError> {
        let mut lines = Lines::new(places, bytes);
        let mut model = Self::default();
        while let Some(keyword) = lines.keyword()? {
            model.keyword(&keyword, &mut lines)?;
        }
        model.beside.numbers.sort_unstable();
        let moved = model.translation;
        if moved != [0.0; 3] {
            model.points.iter_mut().for_each(|point| (0..3).for_each(|d| point[d] += moved[d]));
        }
        Ok(model)
    }

    fn keyword(&mut self, keyword: &Keyword<'_>, lines: &mut Lines<'a>) -> Result<(), MeshError> {
        // Points of reference and connectors of an assembly are numbered apart, and are no part of a mesh.
        let is_of_assembly = self.scope == Scope::Assembly && !keyword.has("INSTANCE");
        match keyword.name.as_str() {
            "PART" => self.part(lines),
            "INSTANCE" => self.instance(lines),
            "ASSEMBLY" => self.enter(Scope::Assembly),
            "END INSTANCE" => self.enter(Scope::Assembly),
            "END PART" | "END ASSEMBLY" => self.enter(Scope::Part),
            "NODE" | "ELEMENT" | "NSET" | "ELSET" if is_of_assembly => Ok(()),
            "NODE" => self.nodes(keyword, lines),
            "ELEMENT" => self.elements(keyword, lines),
            "NSET" | "ELSET" => self.set(keyword, lines),
            "SURFACE" => self.surface(keyword, lines),
            name if name.ends_with(" SECTION") => {
                self.sections.extend(keyword.named("ELSET").map(|set| (set.key, self.scope_name())));
                Ok(())
            }
            "INCLUDE" if keyword.has("INPUT") => refuse_input(keyword, lines),
            "INCLUDE" => Err(lines.error("`*INCLUDE` names no file by `INPUT=`")),
            name @ ("NGEN" | "NFILL" | "NCOPY" | "NMAP" | "ELGEN" | "ELCOPY" | "SYSTEM") => {
                let advice = "write nodes and elements out one by one, in the coordinates of the file";
                Err(lines.unsupported(format!("the keyword `*{name}`"), advice))
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, scope: Scope) -> Result<(), MeshError> {
        self.scope = scope;
        Ok(())
    }

    /// Sets of an assembly may have the names of sets of its part.
    fn scope_name(&self) -> &'static str {
        if self.scope == Scope::Part { "" } else { "assembly " }
    }

    fn part(&mut self, lines: &Lines<'_>) -> Result<(), MeshError> {
        self.n_parts += 1;
        if self.n_parts > 1 {
            let advice = "merge them into one part with one mesh";
            return Err(lines.unsupported("a file of several parts", advice));
        }
        self.enter(Scope::Part)
    }

    fn instance(&mut self, lines: &mut Lines<'_>) -> Result<(), MeshError> {
        self.n_instances += 1;
        if self.n_instances > 1 {
            let advice = "merge the instances into one part with one mesh";
            return Err(lines.unsupported("an assembly of several instances", advice));
        }
        if let Some(line) = lines.data() {
            for (x, word) in self.translation.iter_mut().zip(fields(line)) {
                *x = lines.coordinate(word)?;
            }
        }
        if lines.data().is_some() {
            let advice = "rotate the part itself";
            return Err(lines.unsupported("an instance that is rotated", advice));
        }
        self.enter(Scope::Instance)
    }

    fn nodes(&mut self, keyword: &Keyword<'_>, lines: &mut Lines<'a>) -> Result<(), MeshError> {
        refuse_input(keyword, lines)?;
        let system = keyword.value("SYSTEM").unwrap_or(b"R");
        if !system.eq_ignore_ascii_case(b"R") {
            let what = format!("nodes in the coordinates `{}`", show(system));
            return Err(lines.unsupported(what, "Cartesian ones (`SYSTEM=R`) can be read"));
        }
        let first = self.points.len();
        while let Some(line) = lines.data() {
            let mut words = fields(line);
            let number: u32 = lines.integer(words.next().unwrap_or_default(), "the number of a node")?;
            let mut point = [0.0; 3];
            for (x, word) in point.iter_mut().zip(words) {
                *x = lines.coordinate(word)?;
            }
            self.point_numbers.push(number.into());
            self.points.push(point);
        }
        if let Some(name) = keyword.named("NSET") {
            let scope = self.scope_name();
            let part = SetEntries::Members(first as u32..self.points.len() as u32);
            let set = self.node_sets.add(&name, scope, keyword, part);
            // It names nodes as they are defined, not a part of the boundary.
            set.is_internal = true;
        }
        Ok(())
    }

    fn elements(&mut self, keyword: &Keyword<'_>, lines: &mut Lines<'a>) -> Result<(), MeshError> {
        refuse_input(keyword, lines)?;
        let kind = keyword.value("TYPE").ok_or_else(|| lines.error("`*ELEMENT` has no `TYPE`"))?;
        let name = show(kind).to_ascii_uppercase();
        let Some(kind) = ElementType::parse(kind, lines)? else {
            return self.elements_beside(name, keyword, lines);
        };
        if name.starts_with('B') {
            self.beside.beams.insert(name);
        }
        let first = self.element_numbers.len();
        while let Some(line) = lines.data() {
            let mut words = fields(line);
            let number: u32 = lines.integer(words.next().unwrap_or_default(), "the number of an element")?;
            self.element_numbers.push(number.into());
            let mut n = 0;
            loop {
                for word in words {
                    self.element_nodes.push(lines.integer(word, "a node of an element")?);
                    n += 1;
                }
                if n >= kind.n_nodes {
                    break;
                }
                let next = lines.data();
                words = fields(next.ok_or_else(|| {
                    lines.error(format!("element {number} has {n} nodes where {} are needed", kind.n_nodes))
                })?);
            }
            if n > kind.n_nodes {
                let message = format!("element {number} has {n} nodes where {} are needed", kind.n_nodes);
                return Err(lines.error(message));
            }
        }
        let end = self.element_numbers.len();
        self.blocks.push(Block { kind, end });
        if let Some(name) = keyword.named("ELSET") {
            let scope = self.scope_name();
            let part = SetEntries::Members(first as u32..end as u32);
            self.element_sets.add(&name, scope, keyword, part);
        }
        Ok(())
    }

    fn elements_beside(
        &mut self,
        name: String,
        keyword: &Keyword<'_>,
        lines: &mut Lines<'a>,
    ) -> Result<(), MeshError> {
        self.beside.types.insert(name);
        while let Some(line) = lines.data() {
            let number = fields(line).next().unwrap_or_default();
            self.beside.numbers.push(lines.integer(number, "the number of an element")?);
        }
        if let Some(name) = keyword.named("ELSET") {
            let end = self.element_numbers.len() as u32;
            let scope = self.scope_name();
            self.element_sets.add(&name, scope, keyword, SetEntries::Members(end..end));
        }
        Ok(())
    }

    fn set(&mut self, keyword: &Keyword<'_>, lines: &mut Lines<'a>) -> Result<(), MeshError> {
        refuse_input(keyword, lines)?;
        let name = keyword.named(&keyword.name);
        let name = name.ok_or_else(|| lines.error(format!("`*{}` names no set", keyword.name)))?;
        let scope = self.scope_name();
        let is_of_nodes = keyword.name == "NSET";
        if is_of_nodes && keyword.has("ELSET") {
            let advice = "list the nodes";
            return Err(lines.unsupported("a set of the nodes of elements (`*NSET, ELSET=`)", advice));
        }
        let sets = if is_of_nodes { &mut self.node_sets } else { &mut self.element_sets };
        let data = lines.pass_over();
        let is_generated = keyword.has("GENERATE");
        let part = if is_generated { SetEntries::Ranges(data) } else { SetEntries::List(data, scope) };
        sets.add(&name, scope, keyword, part);
        Ok(())
    }

    fn surface(&mut self, keyword: &Keyword<'_>, lines: &mut Lines<'a>) -> Result<(), MeshError> {
        let name = keyword.named("NAME").ok_or_else(|| lines.error("`*SURFACE` has no `NAME`"))?;
        let kind = keyword.value("TYPE").unwrap_or(b"ELEMENT");
        let is_of_nodes = kind.eq_ignore_ascii_case(b"NODE");
        if !is_of_nodes && !kind.eq_ignore_ascii_case(b"ELEMENT") {
            // Those of other types, such as rigid ones, are made by formulas.
            return Ok(());
        }
        if keyword.has("COMBINE") || keyword.has("CROP") {
            return Err(lines.unsupported("a surface combined of others", "list its elements and sides"));
        }
        let scope = self.scope_name();
        let data = lines.pass_over();
        let (line, places) = (keyword.line, lines.origins());
        self.surfaces.push(Surface { name: name.shown, line, is_of_nodes, scope, places, data });
        Ok(())
    }
}

fn refuse_input(keyword: &Keyword<'_>, lines: &Lines<'_>) -> Result<(), MeshError> {
    if !keyword.has("INPUT") || lines.origins().is_whole {
        return Ok(());
    }
    let what = format!("`*{}` whose lines are in another file", keyword.name);
    Err(lines.unsupported(what, "read the file by its name, or put them into it"))
}
