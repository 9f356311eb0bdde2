//! Statements of EasyML, with values as formulas of this program.

use super::lexer::{Token, tokens};
use crate::CardiacError;
use crate::ionic::source::Source;

/// Most blocks and parentheses inside each other.
const MAX_DEPTH: usize = 100;

/// A name with its value.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub name: String,
    /// A formula, and the names in it.
    pub formula: String,
    pub names: Vec<String>,
    /// The byte at which it begins.
    pub at: usize,
}

/// The parsed contents of a text.
#[derive(Debug, Default)]
pub struct Statements {
    pub assignments: Vec<Assignment>,
    /// Names marked `.external(role)`, with the role, or with the name itself if there is no role.
    pub externals: Vec<(String, String)>,
}

/// Reads a text.
pub fn parse(source: &Source) -> Result<Statements, CardiacError> {
    let mut parser = Parser { source, tokens: tokens(source)?, next: 0, depth: 0 };
    let mut statements = Statements::default();
    let mut marked = Vec::new();
    while parser.peek().is_some() {
        parser.statement(&mut statements, &mut marked)?;
    }
    Ok(statements)
}

struct Parser<'a> {
    source: &'a Source,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|token| token.text)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.source.text.len(), |token| token.at)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, CardiacError> {
        Err(self.source.error(self.at(), message))
    }

    fn accept(&mut self, text: &str) -> bool {
        let is_next = self.peek() == Some(text);
        self.next += usize::from(is_next);
        is_next
    }

    fn need(&mut self, text: &str) -> Result<(), CardiacError> {
        if self.accept(text) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".into(), |found| format!("`{found}`"));
        self.error(format!("expected `{text}`, found {found}"))
    }

    fn name(&mut self) -> Result<Token<'a>, CardiacError> {
        match self.tokens.get(self.next) {
            Some(token) if token.is_name() => {
                self.next += 1;
                Ok(*token)
            }
            _ => self.error("expected a name"),
        }
    }

    fn deeper(&mut self) -> Result<(), CardiacError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { self.error("too many levels of nesting") } else { Ok(()) }
    }

    /// Reads a statement; `marked` are the names that a mark is about.
    fn statement(&mut self, to: &mut Statements, marked: &mut Vec<String>) -> Result<(), CardiacError> {
        match self.peek() {
            Some(";") => self.next += 1,
            Some(".") => self.mark(to, marked)?,
            Some("group") => {
                self.next += 1;
                self.need("{")?;
                self.deeper()?;
                let mut names = Vec::new();
                while !self.accept("}") {
                    let mut own = Vec::new();
                    self.statement(to, &mut own)?;
                    names.append(&mut own);
                }
                self.depth -= 1;
                *marked = names;
            }
            Some("if") => {
                self.next += 1;
                let assigned = self.condition()?;
                *marked = assigned.iter().map(|assignment| assignment.name.clone()).collect();
                to.assignments.extend(assigned);
            }
            _ => {
                let token = self.name()?;
                if self.accept("=") {
                    let assignment = self.assignment(token)?;
                    to.assignments.push(assignment);
                }
                self.need(";")?;
                *marked = vec![token.text.into()];
            }
        }
        Ok(())
    }

    fn assignment(&mut self, token: Token<'a>) -> Result<Assignment, CardiacError> {
        let mut names = Vec::new();
        let formula = self.value(&mut names)?;
        Ok(Assignment { name: token.text.into(), formula, names, at: token.at })
    }

    /// `.name(…)`; only `.external` is used.
    fn mark(&mut self, to: &mut Statements, marked: &[String]) -> Result<(), CardiacError> {
        self.need(".")?;
        let mark = self.name()?;
        self.need("(")?;
        let role = self.tokens.get(self.next).filter(|token| token.is_name());
        if mark.text == "external" {
            let role = |name: &String| (name.clone(), role.map_or(name.clone(), |role| role.text.into()));
            to.externals.extend(marked.iter().map(role));
        }
        while !self.accept(")") {
            if self.peek().is_none() {
                return self.error("expected `)`");
            }
            self.next += 1;
        }
        self.accept(";");
        Ok(())
    }

    /// Parses the rest after `if` or `elif`: the assignments of the branches joined.
    fn condition(&mut self) -> Result<Vec<Assignment>, CardiacError> {
        self.deeper()?;
        self.need("(")?;
        let mut names = Vec::new();
        let condition = self.value(&mut names)?;
        self.need(")")?;
        let then = self.block()?;
        let otherwise = if self.accept("elif") {
            self.condition()?
        } else if !self.accept("else") {
            return self.error("a condition needs `else`: every name has a value in each branch");
        } else if self.accept("if") {
            self.condition()?
        } else {
            self.block()?
        };
        self.depth -= 1;
        let mut joined = Vec::new();
        for one in then {
            let Some(other) = otherwise.iter().find(|other| other.name == one.name) else {
                return Err(self
                    .source
                    .error(one.at, format!("`{}` has no value in another branch", one.name)));
            };
            let formula = format!("if({condition}, {}, {})", one.formula, other.formula);
            let names = [&names[..], &one.names, &other.names].concat();
            joined.push(Assignment { formula, names, ..one });
        }
        if let Some(other) = otherwise.iter().find(|other| joined.iter().all(|one| one.name != other.name)) {
            return Err(self
                .source
                .error(other.at, format!("`{}` has no value in another branch", other.name)));
        }
        Ok(joined)
    }

    fn block(&mut self) -> Result<Vec<Assignment>, CardiacError> {
        self.need("{")?;
        let (mut statements, mut marked) = (Statements::default(), Vec::new());
        while !self.accept("}") {
            self.statement(&mut statements, &mut marked)?;
        }
        Ok(statements.assignments)
    }

    /// `condition ? a : b`, or a value without it.
    fn value(&mut self, names: &mut Vec<String>) -> Result<String, CardiacError> {
        self.deeper()?;
        let condition = self.operands(names)?;
        let value = if self.accept("?") {
            let one = self.value(names)?;
            self.need(":")?;
            let other = self.value(names)?;
            format!("if({condition}, {one}, {other})")
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Operands and operators between them, which have the precedence that they have in formulas.
    fn operands(&mut self, names: &mut Vec<String>) -> Result<String, CardiacError> {
        let mut text = String::new();
        loop {
            while let Some(sign @ ("-" | "+" | "!")) = self.peek() {
                self.next += 1;
                text += if sign == "!" { "not " } else { sign };
            }
            text += &self.operand(names)?;
            let Some(operator) = self.peek() else { return Ok(text) };
            text += match operator {
                "and" | "&&" => " and ",
                "or" | "||" => " or ",
                "+" | "-" | "*" | "/" | "<" | "<=" | ">" | ">=" | "==" | "!=" => operator,
                _ => return Ok(text),
            };
            self.next += 1;
        }
    }

    fn operand(&mut self, names: &mut Vec<String>) -> Result<String, CardiacError> {
        if self.accept("(") {
            let value = self.value(names)?;
            self.need(")")?;
            return Ok(format!("({value})"));
        }
        match self.tokens.get(self.next).copied() {
            Some(token) if token.is_number() => {
                self.next += 1;
                Ok(token.text.into())
            }
            Some(token) if token.is_name() => {
                self.next += 1;
                if self.accept("(") {
                    return self.call(token.text, names);
                }
                let name = super::translate::renamed(token.text);
                names.push(name.clone());
                Ok(name)
            }
            _ => self.error("expected a value"),
        }
    }

    fn call(&mut self, function: &str, names: &mut Vec<String>) -> Result<String, CardiacError> {
        let mut arguments = vec![self.value(names)?];
        while self.accept(",") {
            arguments.push(self.value(names)?);
        }
        self.need(")")?;
        let arguments = arguments.join(", ");
        Ok(match function {
            "square" => format!("({arguments})^2"),
            "cube" => format!("({arguments})^3"),
            "fabs" => format!("abs({arguments})"),
            _ => format!("{function}({arguments})"),
        })
    }
}
