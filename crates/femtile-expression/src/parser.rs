//! The parser: operator precedence climbing (Pratt).
//!
//! Precedence from loose to tight: `or` 1, `and` 2, `not` 3, comparisons 4, `+ -` 5, `* /` 6, unary minus 7, `^` 8.
//! Recursion is bounded by [`MAX_DEPTH`] levels of nesting times the eight precedences, work by [`MAX_TERMS`].

use std::ops::Range;

use crate::error::{ExpressionError, quote};
use crate::function::{Meaning, unknown_name};
use crate::graph::Builder;
use crate::lexer::{Lexer, Token};
use crate::names::Scope;
use crate::node::{Binary, Id, Unary};

/// Levels of parentheses, calls and stacked exponents that a text may have.
pub(crate) const MAX_DEPTH: usize = 200;
/// Operands and operators that a text may have.
pub(crate) const MAX_TERMS: usize = 10_000;

const LOOSEST: u8 = 1;

type Parsed<T> = Result<T, Box<ExpressionError>>;

/// The expected kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Number,
    Condition,
}

/// A parsed part: its node, what it is, and the text that it came from.
#[derive(Debug, Clone)]
struct ParsedTerm {
    id: Id,
    sort: Sort,
    span: Range<usize>,
}

/// Parses the whole of `text` as a number or as a condition into a builder, with the names of a scope.
pub(crate) fn parse(text: &str, wanted: Sort, builder: &mut Builder, scope: &Scope) -> Parsed<Id> {
    let mut lexer = Lexer::new(text);
    let (token, span) = lexer.next()?;
    if token == Token::End {
        return Err(ExpressionError::new(0..text.len(), "the text is empty").advise(match wanted {
            Sort::Number => "write a number or an expression such as sin(pi*x)",
            Sort::Condition => "write a comparison such as x < 0.5",
        }));
    }
    let mut parser = Parser { text, lexer, token, span, builder, scope, n_terms: 0, depth: 0 };
    let part = parser.part(LOOSEST)?;
    match parser.token {
        Token::End => {}
        Token::Close => {
            return Err(ExpressionError::new(parser.span, "this parenthesis closes nothing")
                .advise("remove it or open one before"));
        }
        Token::Comma => {
            return Err(ExpressionError::new(parser.span, "a comma outside of a function's arguments")
                .advise("a decimal fraction is written with a point, as in 1.5"));
        }
        _ => return Err(parser.missing_operator(&part)),
    }
    Ok(parser.expect(part, wanted)?.id)
}

struct Parser<'t, 'b> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The token that comes next, and where it stands.
    token: Token<'t>,
    span: Range<usize>,
    builder: &'b mut Builder,
    scope: &'b Scope,
    n_terms: usize,
    depth: usize,
}

impl<'t> Parser<'t, '_> {
    /// Takes the token that comes next.
    fn advance(&mut self) -> Parsed<Range<usize>> {
        let (token, span) = self.lexer.next()?;
        self.token = token;
        Ok(std::mem::replace(&mut self.span, span))
    }

    /// Takes an operand or operator and counts it.
    fn advance_term(&mut self) -> Parsed<Range<usize>> {
        self.n_terms += 1;
        if self.n_terms > MAX_TERMS {
            let message = format!("more than {MAX_TERMS} numbers, names and operators");
            return Err(ExpressionError::new(self.span.clone(), message)
                .advise("give such data as a cell field of the mesh or by tag"));
        }
        self.advance()
    }

    /// An operand and every operator behind it that binds at least as tightly as `tightness`.
    fn part(&mut self, tightness: u8) -> Parsed<ParsedTerm> {
        let mut left = self.operand(tightness)?;
        // The right side of the comparison that `left` is, which a chain such as `0 < x < 1` compares once more.
        let mut chained: Option<ParsedTerm> = None;
        while let Token::Operator(op) = self.token {
            let precedence = op.precedence();
            if precedence < tightness {
                break;
            }
            self.advance_term()?;
            let right = match op {
                Binary::Power => self.nested(|parser| parser.part(precedence))?,
                _ => self.part(precedence + 1)?,
            };
            let span = left.span.start..right.span.end;
            left = match chained.take().filter(|_| op.is_comparison()) {
                Some(middle) => {
                    let link = self.combine(op, middle, right.clone())?;
                    let id = self.builder.binary(Binary::And, left.id, link.id);
                    ParsedTerm { id, sort: Sort::Condition, span }
                }
                None => self.combine(op, left, right.clone())?,
            };
            if op.is_comparison() {
                chained = Some(right);
            }
        }
        Ok(left)
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(ExpressionError::new(self.span.clone(), message).advise("remove parentheses"));
        }
        self.depth += 1;
        let result = inner(self)?;
        self.depth -= 1;
        Ok(result)
    }

    fn combine(&mut self, op: Binary, left: ParsedTerm, right: ParsedTerm) -> Parsed<ParsedTerm> {
        let operands = if op.joins_conditions() { Sort::Condition } else { Sort::Number };
        let (left, right) = (self.expect(left, operands)?, self.expect(right, operands)?);
        let sort = if op.is_comparison() { Sort::Condition } else { operands };
        let id = self.builder.binary(op, left.id, right.id);
        Ok(ParsedTerm { id, sort, span: left.span.start..right.span.end })
    }

    /// A number, a name, a call, a group, or one of them behind signs.
    fn operand(&mut self, tightness: u8) -> Parsed<ParsedTerm> {
        match self.token {
            Token::Operator(Binary::Subtract | Binary::Add) => self.signed(),
            Token::Not => self.negated(tightness),
            Token::Number(value) => {
                let span = self.advance_term()?;
                Ok(ParsedTerm { id: self.builder.constant(value), sort: Sort::Number, span })
            }
            Token::Name(name) => self.named(name),
            Token::Open => {
                let open = self.advance_term()?;
                let inner = self.nested(|parser| parser.part(LOOSEST))?;
                let close = self.close(&open, &inner)?;
                Ok(ParsedTerm { span: open.start..close.end, ..inner })
            }
            Token::Operator(_) | Token::Close | Token::Comma | Token::End => Err(self.missing_operand()),
        }
    }

    /// Signs and what they stand before; any number of them, without recursion.
    fn signed(&mut self) -> Parsed<ParsedTerm> {
        let start = self.span.start;
        let mut negative = false;
        while let Token::Operator(sign @ (Binary::Subtract | Binary::Add)) = self.token {
            negative ^= sign == Binary::Subtract;
            self.advance_term()?;
        }
        let inner = self.part(Binary::Power.precedence())?;
        let inner = self.expect(inner, Sort::Number)?;
        let id = if negative { self.builder.negate(inner.id) } else { inner.id };
        Ok(ParsedTerm { id, span: start..inner.span.end, ..inner })
    }

    /// `not` and what it stands before; any number of them, without recursion.
    fn negated(&mut self, tightness: u8) -> Parsed<ParsedTerm> {
        let start = self.span.start;
        if tightness > Unary::Not.precedence() {
            return Err(ExpressionError::new(self.span.clone(), "`not` stands where a number is expected")
                .advise("put the negated comparison in parentheses"));
        }
        let mut negative = false;
        while self.token == Token::Not {
            negative = !negative;
            self.advance_term()?;
        }
        let inner = self.part(Unary::Not.precedence())?;
        let inner = self.expect(inner, Sort::Condition)?;
        let id = if negative { self.builder.unary(Unary::Not, inner.id) } else { inner.id };
        Ok(ParsedTerm { id, span: start..inner.span.end, ..inner })
    }

    fn named(&mut self, name: &'t str) -> Parsed<ParsedTerm> {
        let span = self.advance_term()?;
        let called = self.token == Token::Open;
        let Some(meaning) = self.scope.meaning(name) else {
            return Err(unknown_name(name, span, called, self.scope));
        };
        let (id, sort) = match meaning {
            _ if meaning.is_function() && called => return self.call(name, meaning, span),
            Meaning::Variable(variable) => (self.builder.variable(variable), Sort::Number),
            Meaning::Value(id) => (id, Sort::Number),
            Meaning::Constant(value) => (self.builder.constant(value), Sort::Number),
            Meaning::Truth(value) => (self.builder.truth(value), Sort::Condition),
            _ => {
                return Err(ExpressionError::new(
                    span,
                    format!("`{name}` is a function without its arguments"),
                )
                .advise(format!("write {name}(…) with parentheses")));
            }
        };
        if called {
            return Err(ExpressionError::new(span, format!("`{name}` is not a function"))
                .advise(format!("a product is written {name}*(…)")));
        }
        Ok(ParsedTerm { id, sort, span })
    }

    /// The arguments of a function and its value; the token that comes next is the opening parenthesis.
    fn call(&mut self, name: &str, meaning: Meaning, span: Range<usize>) -> Parsed<ParsedTerm> {
        let open = self.advance()?;
        let mut arguments = Vec::new();
        if self.token != Token::Close {
            loop {
                arguments.push(self.nested(|parser| parser.part(LOOSEST))?);
                if self.token != Token::Comma {
                    break;
                }
                self.advance()?;
            }
        }
        let close = match arguments.last() {
            Some(last) => self.close(&open, &last.clone())?,
            None => self.advance()?,
        };
        let span = span.start..close.end;
        let (at_least, at_most, wanted) = match meaning {
            Meaning::Unary(_) => (1, 1, "1 argument"),
            Meaning::Fold(_) => (2, usize::MAX, "2 arguments or more"),
            Meaning::If => (3, 3, "3 arguments, a condition and two numbers"),
            _ => (2, 2, "2 arguments"),
        };
        if !(at_least..=at_most).contains(&arguments.len()) {
            let message = format!("`{name}` takes {wanted}, not {}", arguments.len());
            return Err(ExpressionError::new(span, message));
        }
        let mut ids = Vec::with_capacity(arguments.len());
        for (i, argument) in arguments.into_iter().enumerate() {
            let sort = if meaning == Meaning::If && i == 0 { Sort::Condition } else { Sort::Number };
            ids.push(self.expect(argument, sort)?.id);
        }
        let id = match (meaning, ids.as_slice()) {
            (Meaning::Unary(op), [a]) => self.builder.unary(op, *a),
            (Meaning::If, [condition, a, b]) => self.builder.select(*condition, *a, *b),
            (Meaning::Binary(op) | Meaning::Fold(op), [first, rest @ ..]) => {
                rest.iter().fold(*first, |folded, argument| self.builder.binary(op, folded, *argument))
            }
            _ => return Err(ExpressionError::new(span, format!("`{name}` takes {wanted}"))),
        };
        Ok(ParsedTerm { id, sort: Sort::Number, span })
    }

    /// Takes the parenthesis that closes the one at `open`, after `inner`.
    fn close(&mut self, open: &Range<usize>, inner: &ParsedTerm) -> Parsed<Range<usize>> {
        match self.token {
            Token::Close => self.advance(),
            Token::End => {
                Err(ExpressionError::new(open.clone(), "this parenthesis is never closed").advise("add `)`"))
            }
            Token::Comma => {
                Err(ExpressionError::new(self.span.clone(), "a comma in a group that is no argument list")
                    .advise("a decimal fraction is written with a point, as in 1.5"))
            }
            _ => Err(self.missing_operator(inner)),
        }
    }

    /// `part`, if it is of the wanted sort.
    fn expect(&self, part: ParsedTerm, wanted: Sort) -> Parsed<ParsedTerm> {
        if part.sort == wanted {
            return Ok(part);
        }
        let source = quote(&self.text[part.span.clone()]);
        Err(match wanted {
            Sort::Number => ExpressionError::new(
                part.span,
                format!("{source} is true or false where a number is expected"),
            )
            .advise("if(condition, 1, 0) makes a number of it"),
            Sort::Condition => {
                ExpressionError::new(part.span, format!("{source} is a number where a condition is expected"))
                    .advise("compare it with something, as in x < 0.5")
            }
        })
    }

    fn missing_operand(&self) -> Box<ExpressionError> {
        let wanted = "a number, a name or `(` is expected";
        match self.token {
            Token::End => ExpressionError::new(self.span.clone(), format!("the text ends where {wanted}")),
            _ => {
                let found = quote(&self.text[self.span.clone()]);
                ExpressionError::new(self.span.clone(), format!("{found} stands where {wanted}"))
            }
        }
    }

    /// Two operands stand side by side: `left` and the token that comes next.
    fn missing_operator(&self, left: &ParsedTerm) -> Box<ExpressionError> {
        let found = quote(&self.text[self.span.clone()]);
        let error = ExpressionError::new(self.span.clone(), format!("an operator is missing before {found}"));
        if self.token == Token::Not {
            return error.advise("conditions are joined by `and` or `or`");
        }
        let left_text = self.text.get(left.span.clone()).unwrap_or_default();
        if let Token::Name(name) = self.token
            && self.scope.meaning(name).is_none()
            && left_text.parse::<f64>().is_ok()
        {
            return error.advise(format!("numbers have no unit here: write {left_text}"));
        }
        match self.text.get(left.span.clone()) {
            Some(source) if source.len() <= 20 => {
                error.advise(format!("a product is written {source}*{}", found.trim_matches('`')))
            }
            _ => error.advise("a product is written with *"),
        }
    }
}

impl Binary {
    /// Returns the precedence of the operator; functions of two arguments have that of calls.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual
            | Self::Equal
            | Self::NotEqual => 4,
            Self::Add | Self::Subtract => 5,
            Self::Multiply | Self::Divide => 6,
            Self::Power => 8,
            Self::Atan2 | Self::Hypot | Self::Min | Self::Max => PRIMARY,
        }
    }

    fn joins_conditions(self) -> bool {
        matches!(self, Self::And | Self::Or)
    }
}

impl Unary {
    /// Returns the precedence of the operator; functions have that of calls.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Not => 3,
            Self::Negate => 7,
            _ => PRIMARY,
        }
    }
}

/// Precedence of what no operator can tear apart.
pub(crate) const PRIMARY: u8 = 9;
