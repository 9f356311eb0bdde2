//! The parser: operator precedence climbing (Pratt).
//!
//! Precedence from loose to tight: `or` 1, `and` 2, `not` 3, comparisons 4, `+ -` 5, `* / . :` 6, unary minus 7, `^` 8, behind
//! an operand `'` and indices.
//! Recursion is bounded by [`MAX_DEPTH`] levels of nesting times the eight precedences, work by [`MAX_TERMS`].

use std::ops::Range;

use crate::array::{self, Advice, Array};
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

/// The value of a part of a text.
#[derive(Debug, Clone)]
enum Operand {
    Array(Array),
    Condition(Id),
}

/// A parsed part, and the text that it came from.
#[derive(Debug, Clone)]
struct ParsedTerm {
    operand: Operand,
    span: Range<usize>,
}

impl ParsedTerm {
    fn number(id: Id, span: Range<usize>) -> Self {
        Self::array(Array::number(id), span)
    }

    fn array(array: Array, span: Range<usize>) -> Self {
        Self { operand: Operand::Array(array), span }
    }

    fn condition(id: Id, span: Range<usize>) -> Self {
        Self { operand: Operand::Condition(id), span }
    }

    fn id(&self) -> Option<Id> {
        match &self.operand {
            Operand::Array(array) => array.as_number(),
            Operand::Condition(id) => Some(*id),
        }
    }
}

/// An operation between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Of(Binary),
    Dot,
    Colon,
}

impl Operation {
    fn of(token: Token<'_>) -> Option<Self> {
        match token {
            Token::Operator(op) => Some(Self::Of(op)),
            Token::Dot => Some(Self::Dot),
            Token::Colon => Some(Self::Colon),
            _ => None,
        }
    }

    fn precedence(self) -> u8 {
        match self {
            Self::Of(op) => op.precedence(),
            Self::Dot | Self::Colon => Binary::Multiply.precedence(),
        }
    }

    fn is_comparison(self) -> bool {
        matches!(self, Self::Of(op) if op.is_comparison())
    }
}

/// Parses the whole of `text` as a number or as a condition into a builder, with the names of a scope.
pub(crate) fn parse(text: &str, wanted: Sort, builder: &mut Builder, scope: &Scope) -> Parsed<Id> {
    let empty = match wanted {
        Sort::Number => "write a number or an expression such as sin(pi*x)",
        Sort::Condition => "write a comparison such as x < 0.5",
    };
    let (parser, part) = Parser::whole(text, empty, builder, scope)?;
    parser.expect(part, wanted).map(|(id, _)| id)
}

/// Parses the whole of `text` as a number, a vector or a matrix.
pub(crate) fn parse_array(text: &str, builder: &mut Builder, scope: &Scope) -> Parsed<Array> {
    let (parser, part) = Parser::whole(text, "write a formula such as 2*grad(u)", builder, scope)?;
    parser.expect_array(part).map(|(array, _)| array)
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

impl<'t, 'b> Parser<'t, 'b> {
    /// Parses the whole of a text.
    fn whole(
        text: &'t str,
        empty: &str,
        builder: &'b mut Builder,
        scope: &'b Scope,
    ) -> Parsed<(Self, ParsedTerm)> {
        let mut lexer = Lexer::new(text, scope.has_arrays);
        let (token, span) = lexer.next()?;
        if token == Token::End {
            return Err(ExpressionError::new(0..text.len(), "the text is empty").advise(empty));
        }
        let mut parser = Parser { text, lexer, token, span, builder, scope, n_terms: 0, depth: 0 };
        let part = parser.part(LOOSEST)?;
        match parser.token {
            Token::End => Ok((parser, part)),
            Token::Close => Err(ExpressionError::new(parser.span, "this parenthesis closes nothing")
                .advise("remove it or open one before")),
            Token::CloseBracket => Err(ExpressionError::new(parser.span, "this bracket closes nothing")
                .advise("remove it or open one before")),
            Token::Comma => {
                Err(ExpressionError::new(parser.span, "a comma outside of a function's arguments")
                    .advise("a decimal fraction is written with a point, as in 1.5"))
            }
            _ => Err(parser.missing_operator(&part)),
        }
    }

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
        while let Some(op) = Operation::of(self.token) {
            let precedence = op.precedence();
            if precedence < tightness {
                break;
            }
            self.advance_term()?;
            let right = match op {
                Operation::Of(Binary::Power) => self.nested(|parser| parser.part(precedence))?,
                _ => self.part(precedence + 1)?,
            };
            let span = left.span.start..right.span.end;
            left = match (chained.take().filter(|_| op.is_comparison()), left.id()) {
                (Some(middle), Some(before)) => {
                    let link = self.combine(op, middle, right.clone())?;
                    let (link, _) = self.expect(link, Sort::Condition)?;
                    ParsedTerm::condition(self.builder.binary(Binary::And, before, link), span)
                }
                _ => self.combine(op, left, right.clone())?,
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

    fn combine(&mut self, op: Operation, left: ParsedTerm, right: ParsedTerm) -> Parsed<ParsedTerm> {
        let span = left.span.start..right.span.end;
        if let Operation::Of(op) = op
            && (op.is_comparison() || op.joins_conditions() || op == Binary::Power)
        {
            let operands = if op.joins_conditions() { Sort::Condition } else { Sort::Number };
            let ((left, _), (right, _)) = (self.expect(left, operands)?, self.expect(right, operands)?);
            let id = self.builder.binary(op, left, right);
            return Ok(match op {
                Binary::Power => ParsedTerm::number(id, span),
                _ => ParsedTerm::condition(id, span),
            });
        }
        let ((left, of_left), (right, of_right)) = (self.expect_array(left)?, self.expect_array(right)?);
        let builder = &mut *self.builder;
        let (made, word) = match op {
            Operation::Of(Binary::Multiply) => (array::product(builder, &left, &right), "multiplied"),
            Operation::Of(Binary::Divide) => (array::quotient(builder, &left, &right), "divided"),
            Operation::Of(Binary::Subtract) => {
                (array::entrywise(builder, Binary::Subtract, &left, &right), "subtracted")
            }
            Operation::Of(op) => (array::entrywise(builder, op, &left, &right), "added"),
            Operation::Dot => (array::dot(builder, &left, &right), "joined by `.`"),
            Operation::Colon => (array::double_dot(builder, &left, &right), "joined by `:`"),
        };
        match made {
            Ok(array) => Ok(ParsedTerm::array(array, span)),
            Err(advice) => {
                let [a, b] = [of_left, of_right].map(|span| quote(&self.text[span]));
                let (left, right) = (left.shape(), right.shape());
                let message = format!("{a} is {left} and {b} {right}, which cannot be {word}");
                Err(ExpressionError::new(span, message).advise(advice))
            }
        }
    }

    /// The transpose or an entry of an operand, where `'` or `[` follows it; any number of them.
    fn postfixed(&mut self, mut term: ParsedTerm) -> Parsed<ParsedTerm> {
        loop {
            let is_transposed = self.token == Token::Prime;
            if !is_transposed && self.token != Token::OpenBracket {
                return Ok(term);
            }
            let open = self.advance_term()?;
            let (array, span) = self.expect_array(term)?;
            let start = span.start;
            term = match is_transposed {
                true => ParsedTerm::array(array::transpose(&array), start..open.end),
                false => {
                    let (parts, close) = self.bracketed(&open)?;
                    let mut indices = Vec::new();
                    for part in parts {
                        indices.push(self.index(part)?);
                    }
                    let entry = array::entry(&array, &indices);
                    let entry = entry.map_err(|advice| self.unfit(&array, span.start..close.end, advice))?;
                    ParsedTerm::array(entry, start..close.end)
                }
            };
        }
    }

    /// The parts between brackets, the first of which is taken, and the closing one.
    fn bracketed(&mut self, open: &Range<usize>) -> Parsed<(Vec<ParsedTerm>, Range<usize>)> {
        let mut parts = vec![self.nested(|parser| parser.part(LOOSEST))?];
        while self.token == Token::Comma {
            self.advance()?;
            parts.push(self.nested(|parser| parser.part(LOOSEST))?);
        }
        match self.token {
            Token::CloseBracket => Ok((parts, self.advance()?)),
            Token::End => {
                Err(ExpressionError::new(open.clone(), "this bracket is never closed").advise("add `]`"))
            }
            _ => Err(self.missing_operator(&parts[parts.len() - 1])),
        }
    }

    /// A number that is an index.
    fn index(&self, part: ParsedTerm) -> Parsed<usize> {
        let (id, span) = self.expect(part, Sort::Number)?;
        match self.builder.value(id) {
            Some(value) if value >= 0.0 && value.fract() == 0.0 && value < 1e6 => Ok(value as usize),
            _ => Err(ExpressionError::new(span, "an index is a number 0, 1, 2, …")),
        }
    }

    /// The error of a function or an index that does not fit its operand.
    fn unfit(&self, of: &Array, span: Range<usize>, advice: Advice) -> Box<ExpressionError> {
        let message = format!("{} does not fit {}", quote(&self.text[span.clone()]), of.shape());
        ExpressionError::new(span, message).advise(advice)
    }

    /// A number, a name, a call, a group, or one of them behind signs.
    fn operand(&mut self, tightness: u8) -> Parsed<ParsedTerm> {
        match self.token {
            Token::Operator(Binary::Subtract | Binary::Add) => self.signed(),
            Token::Not => self.negated(tightness),
            Token::Number(value) => {
                let span = self.advance_term()?;
                let id = self.builder.constant(value);
                self.postfixed(ParsedTerm::number(id, span))
            }
            Token::Name(name) => {
                let named = self.named(name)?;
                self.postfixed(named)
            }
            Token::OpenBracket => {
                let open = self.advance_term()?;
                let (parts, close) = self.bracketed(&open)?;
                let span = open.start..close.end;
                let mut arrays = Vec::with_capacity(parts.len());
                for part in parts {
                    arrays.push(self.expect_array(part)?.0);
                }
                let made = array::stack(&arrays);
                let array = made.map_err(|advice| {
                    ExpressionError::new(span.clone(), "these entries make no vector or matrix")
                        .advise(advice)
                })?;
                self.postfixed(ParsedTerm::array(array, span))
            }
            Token::Open => {
                let open = self.advance_term()?;
                let inner = self.nested(|parser| parser.part(LOOSEST))?;
                let close = self.close(&open, &inner)?;
                self.postfixed(ParsedTerm { span: open.start..close.end, ..inner })
            }
            _ => Err(self.missing_operand()),
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
        let (array, span) = self.expect_array(inner)?;
        let signed = if negative { array::each(&array, |id| self.builder.negate(id)) } else { array };
        Ok(ParsedTerm::array(signed, start..span.end))
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
        let (id, span) = self.expect(inner, Sort::Condition)?;
        let id = if negative { self.builder.unary(Unary::Not, id) } else { id };
        Ok(ParsedTerm::condition(id, start..span.end))
    }

    fn named(&mut self, name: &'t str) -> Parsed<ParsedTerm> {
        let span = self.advance_term()?;
        let called = self.token == Token::Open;
        let Some(meaning) = self.scope.meaning(name) else {
            return Err(unknown_name(name, span, called, self.scope));
        };
        let operand = match (meaning, self.scope.value(name)) {
            _ if meaning.is_function() && called => return self.call(name, meaning, span),
            (Meaning::Variable(variable), _) => {
                Operand::Array(Array::number(self.builder.variable(variable)))
            }
            (Meaning::Bound, Some(array)) => Operand::Array(array.clone()),
            (Meaning::Constant(value), _) => Operand::Array(Array::number(self.builder.constant(value))),
            (Meaning::Truth(value), _) => Operand::Condition(self.builder.truth(value)),
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
        Ok(ParsedTerm { operand, span })
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
            Meaning::Unary(_) | Meaning::Array(_) => (1, 1, "1 argument"),
            Meaning::Fold(_) => (2, usize::MAX, "2 arguments or more"),
            Meaning::If => (3, 3, "3 arguments, a condition and two numbers"),
            _ => (2, 2, "2 arguments"),
        };
        if !(at_least..=at_most).contains(&arguments.len()) {
            let message = format!("`{name}` takes {wanted}, not {}", arguments.len());
            return Err(ExpressionError::new(span, message));
        }
        let unfit = |parser: &Self, of: &Array, advice| parser.unfit(of, span.clone(), advice);
        if let (Meaning::Array(function), [argument]) = (meaning, arguments.as_slice()) {
            let (array, _) = self.expect_array(argument.clone())?;
            let made = array::apply(self.builder, function, &array, self.scope.space.as_ref());
            let made = made.map_err(|advice| unfit(self, &array, advice))?;
            return Ok(ParsedTerm::array(made, span));
        }
        if let (Meaning::If, [condition, a, b]) = (meaning, arguments.as_slice()) {
            let (condition, _) = self.expect(condition.clone(), Sort::Condition)?;
            let ((a, _), (b, of_b)) = (self.expect_array(a.clone())?, self.expect_array(b.clone())?);
            if a.shape() != b.shape() {
                let message = format!(
                    "{} is {}, the other choice {}",
                    quote(&self.text[of_b.clone()]),
                    b.shape(),
                    a.shape()
                );
                return Err(ExpressionError::new(of_b, message).advise("both need the same shape"));
            }
            let mut others = b.entries().iter();
            let chosen =
                array::each(&a, |a| others.next().map_or(a, |b| self.builder.select(condition, a, b.0)));
            return Ok(ParsedTerm::array(chosen, span));
        }
        let mut ids = Vec::with_capacity(arguments.len());
        for argument in arguments {
            ids.push(self.expect(argument, Sort::Number)?.0);
        }
        let id = match (meaning, ids.as_slice()) {
            (Meaning::Unary(op), [a]) => self.builder.unary(op, *a),
            (Meaning::Binary(op) | Meaning::Fold(op), [first, rest @ ..]) => {
                rest.iter().fold(*first, |folded, argument| self.builder.binary(op, folded, *argument))
            }
            _ => return Err(ExpressionError::new(span, format!("`{name}` takes {wanted}"))),
        };
        Ok(ParsedTerm::number(id, span))
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

    /// The node and the text of `part`, if it is of the wanted sort.
    fn expect(&self, part: ParsedTerm, wanted: Sort) -> Parsed<(Id, Range<usize>)> {
        let ParsedTerm { operand, span } = part;
        let source = quote(&self.text[span.clone()]);
        Err(match (operand, wanted) {
            (Operand::Condition(id), Sort::Condition) => return Ok((id, span)),
            (Operand::Condition(_), Sort::Number) => truth_for_number(span, &source),
            (Operand::Array(array), Sort::Number) => match array.as_number() {
                Some(id) => return Ok((id, span)),
                None => {
                    let message = format!("{source} is {} where a number is expected", array.shape());
                    ExpressionError::new(span, message)
                }
            },
            (Operand::Array(array), Sort::Condition) => {
                let message = format!("{source} is {} where a condition is expected", array.shape());
                ExpressionError::new(span, message).advise("compare it with something, as in x < 0.5")
            }
        })
    }

    /// The array and the text of `part`, if it is no condition.
    fn expect_array(&self, part: ParsedTerm) -> Parsed<(Array, Range<usize>)> {
        match part.operand {
            Operand::Array(array) => Ok((array, part.span)),
            Operand::Condition(_) => {
                let source = quote(&self.text[part.span.clone()]);
                Err(truth_for_number(part.span, &source))
            }
        }
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

fn truth_for_number(span: Range<usize>, source: &str) -> Box<ExpressionError> {
    ExpressionError::new(span, format!("{source} is true or false where a number is expected"))
        .advise("if(condition, 1, 0) makes a number of it")
}

/// Precedence of what no operator can tear apart.
pub(crate) const PRIMARY: u8 = 9;
