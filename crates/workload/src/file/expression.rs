//! Numbers of a workload file that follow from others: `own-rows / rows`, `max(rows(fact) - 1, 1)`; and texts with such
//! numbers: `:id${n}`, or `[[n = 2 to rows |, (:id${n})]]` for a piece that is repeated.

use std::ops::RangeInclusive;

use thiserror::Error;

use crate::data::fact_groups;
use crate::params::Params;
use crate::source::{Node, UserError};
use crate::table::{RowCount, Table};

/// Most repetitions of a piece of text or of written-out steps.
pub(super) const MAX_COPIES: i64 = 1000;
/// Deepest nesting of an expression.
const MAX_DEPTH: u32 = 30;
const FUNCTIONS: &str = "min(a, b), max(a, b), if(condition, a, b), rows(table), distinct(column of fact)";

/// Scope of the names in an expression.
pub(super) struct Scope<'p> {
    pub(super) params: &'p Params,
    pub(super) tables: &'p [Table],
    /// Numbers of the repetitions around it.
    pub(super) numbers: Vec<(String, i64)>,
}

/// Why an expression has no value.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum ExpressionError {
    #[error("a number, a parameter or '(' is expected at '{0}'")]
    Unexpected(String),
    #[error("there is no parameter '{name}'{near} (known: {known}); operators have spaces around them")]
    UnknownName { name: String, near: String, known: String },
    #[error("there is no function '{0}' with these arguments (known: {FUNCTIONS})")]
    UnknownFunction(String),
    #[error("'{0}' is not closed")]
    Unclosed(String),
    #[error("it divides by 0")]
    DividesByZero,
    #[error("a repetition is '[[NAME = FIRST to LAST | TEXT]]' with at most {MAX_COPIES} copies, not '[[{0}]]'")]
    Repetition(String),
    #[error("it is nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

impl Node<'_> {
    pub(super) fn is_amount(self) -> bool {
        self.integer().is_some() || self.raw_text().is_ok()
    }

    /// A number, or an expression that gives one.
    pub(super) fn computed(self, scope: &Scope<'_>) -> Result<i128, UserError> {
        if let Some(number) = self.integer() {
            return Ok(number.into());
        }
        let text = self.text().map_err(|_| self.must_be("a number, or an expression in quotes"))?;
        scope.number(text).map_err(|e| self.error(format!("'{}': {e}", self.key)))
    }

    /// Amount of the expression within `range`.
    pub(super) fn amount(self, scope: &Scope<'_>, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        let number = self.computed(scope)?;
        let from = self.text().map_or(String::new(), |text| format!(" ('{text}' with some parameters)"));
        self.within(number, &from, range)
    }
}

impl Scope<'_> {
    pub(super) fn number(&self, text: &str) -> Result<i128, ExpressionError> {
        let mut parser = Parser { rest: text, scope: self, depth: 0, skips: false };
        let value = parser.expression()?;
        if parser.rest.trim_start().is_empty() { Ok(value) } else { Err(parser.unexpected()) }
    }

    /// `text` with its numbers and repeated pieces written out.
    pub(super) fn text(&mut self, text: &str) -> Result<String, ExpressionError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '[']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            if let Some(after) = from.strip_prefix("${") {
                let (expression, after) =
                    after.split_once('}').ok_or_else(|| ExpressionError::Unclosed(from.to_owned()))?;
                out.push_str(&self.number(expression)?.to_string());
                rest = after;
            } else if let Some((piece, after)) = from.strip_prefix("[[").and_then(|after| after.split_once("]]"))
                && let Some((head, text)) = piece.split_once('|')
            {
                let wrong = || ExpressionError::Repetition(piece.to_owned());
                let (name, range) = head.split_once(" = ").ok_or_else(wrong)?;
                let (first, last) = range.split_once(" to ").ok_or_else(wrong)?;
                let (first, last) = (self.number(first)?, self.number(last)?);
                if last.saturating_sub(first) >= MAX_COPIES.into() {
                    return Err(wrong());
                }
                for number in first..=last {
                    self.numbers.push((name.trim().to_owned(), number as i64));
                    let copy = self.text(text);
                    self.numbers.pop();
                    out.push_str(&copy?);
                }
                rest = after;
            } else {
                out.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn name(&self, name: &str) -> Result<i128, ExpressionError> {
        let number = self.numbers.iter().rev().find(|(n, _)| n == name).map(|(_, number)| *number);
        if let Some(value) = number.or_else(|| self.params.value(name)) {
            return Ok(value.into());
        }
        let known: Vec<&str> = self.params.names().collect();
        let near = loadline_model::format::did_you_mean(name, known.iter().copied());
        Err(ExpressionError::UnknownName { name: name.to_owned(), near, known: known.join(", ") })
    }

    /// Rows of a table; of a job, if jobs own them.
    fn rows(&self, table: &str) -> Option<i128> {
        let table = self.tables.iter().find(|t| t.name == table)?;
        let rows = match table.rows {
            RowCount::PerJob(_) => table.batch_rows(self.params),
            _ => table.total_rows(self.params, 0),
        };
        Some(rows.into())
    }
}

struct Parser<'t, 's, 'p> {
    rest: &'t str,
    scope: &'s Scope<'p>,
    depth: u32,
    /// Whether the value is that of a branch which is not taken.
    skips: bool,
}

/// `None` if it divides by 0.
type Operator = (&'static str, fn(i128, i128) -> Option<i128>);
/// Operators by how strongly they bind, the weakest first. Of comparisons, one can follow a number.
const OPERATORS: [&[Operator]; 3] = [
    &[
        ("<=", |a, b| Some((a <= b).into())),
        (">=", |a, b| Some((a >= b).into())),
        ("<", |a, b| Some((a < b).into())),
        (">", |a, b| Some((a > b).into())),
        ("=", |a, b| Some((a == b).into())),
    ],
    &[("+", |a, b| Some(a.saturating_add(b))), ("-", |a, b| Some(a.saturating_sub(b)))],
    &[("*", |a, b| Some(a.saturating_mul(b))), ("/", i128::checked_div)],
];

impl<'t> Parser<'t, '_, '_> {
    fn unexpected(&self) -> ExpressionError {
        ExpressionError::Unexpected(self.rest.trim_start().to_owned())
    }

    fn takes(&mut self, token: &str) -> bool {
        let after = self.rest.trim_start().strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// The characters of which `is` holds, after blanks.
    fn word(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest.trim_start();
        let (word, after) = rest.split_at(rest.find(|c| !is(c)).unwrap_or(rest.len()));
        self.rest = after;
        word
    }

    fn expression(&mut self) -> Result<i128, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExpressionError::TooDeep);
        }
        let value = self.operation(0)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Operands with the operators that bind as strongly as `level`, or more.
    fn operation(&mut self, level: usize) -> Result<i128, ExpressionError> {
        let Some(operators) = OPERATORS.get(level) else { return self.operand() };
        let mut value = self.operation(level + 1)?;
        while let Some((_, apply)) = operators.iter().find(|(token, _)| self.takes(token)) {
            let by = self.operation(level + 1)?;
            value = apply(value, by).or(self.skips.then_some(0)).ok_or(ExpressionError::DividesByZero)?;
            if level == 0 {
                break;
            }
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<i128, ExpressionError> {
        if self.takes("(") {
            let value = self.expression()?;
            return self.closed(value);
        }
        let digits = self.word(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            return digits.parse().map_err(|_| ExpressionError::Unexpected(digits.to_owned()));
        }
        let name = self.word(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
        match name {
            "" | "-" => Err(self.unexpected()),
            name if self.takes("(") => self.call(name),
            name => self.scope.name(name),
        }
    }

    fn closed(&mut self, value: i128) -> Result<i128, ExpressionError> {
        if self.takes(")") { Ok(value) } else { Err(ExpressionError::Unclosed("(".to_owned())) }
    }

    fn call(&mut self, name: &str) -> Result<i128, ExpressionError> {
        let unknown = || ExpressionError::UnknownFunction(name.to_owned());
        if matches!(name, "rows" | "distinct") {
            let of = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
            let value = match name {
                "rows" => self.scope.rows(of),
                // This takes a while.
                _ if self.skips => Some(0),
                _ => Some(fact_groups(of, self.scope.params).into()),
            };
            return self.closed(value.ok_or_else(unknown)?);
        }
        let mut values = vec![self.expression()?];
        let (is_if, skipped) = (name == "if", self.skips);
        while self.takes(",") {
            let is_taken = (values.first() == Some(&0)) == (values.len() == 2);
            self.skips = skipped || (is_if && !is_taken);
            values.push(self.expression()?);
        }
        self.skips = skipped;
        let value = match (name, values.as_slice()) {
            ("min", [a, b]) => *a.min(b),
            ("max", [a, b]) => *a.max(b),
            ("if", [condition, a, b]) => *if *condition == 0 { b } else { a },
            _ => return Err(unknown()),
        };
        self.closed(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn params() -> Params {
        crate::find("LGWR-LAT25").unwrap().params(&BTreeMap::new()).unwrap()
    }

    #[test]
    fn numbers_follow_from_parameters() {
        let params = params();
        let scope = Scope { params: &params, tables: &crate::data::TABLES, numbers: vec![("n".to_owned(), 3)] };
        for (text, value) in [
            ("own-rows / rows", 9),
            ("rows - 5 * (n + 1)", 5),
            ("if(rows > 1, 7, 8)", 7),
            ("max(n, min(2, 9))", 3),
            ("rows(lookup)", 100_000),
            ("distinct(g10)", 10),
            ("rows = 25", 1),
            ("1 - 2 - 3", -4),
        ] {
            assert_eq!(scope.number(text), Ok(value), "{text}");
        }
        for text in [
            "", "rows-1", "rows +", "(rows", "1 / 0", "rows rows", "sum(1, 2)", "if(1, 1 / 0, 2)", "rows(nothing)",
            "min(1)",
        ] {
            assert!(scope.number(text).is_err(), "{text}");
        }
        assert_eq!(scope.number(&"(".repeat(100)), Err(ExpressionError::TooDeep));
    }

    #[test]
    fn texts_have_numbers_and_repeated_pieces() {
        let params = params();
        let mut scope = Scope { params: &params, tables: &[], numbers: Vec::new() };
        for (text, written) in [
            ("(:a1)[[n = 2 to 4 |, (:a${n})]] {first ${rows / 5}}", "(:a1), (:a2), (:a3), (:a4) {first 5}"),
            ("a[[n = 1 to 0 | b]]c $1 x[1]", "ac $1 x[1]"),
        ] {
            assert_eq!(scope.text(text).as_deref(), Ok(written));
        }
        for text in ["${", "${nothing}", "[[n | x]]", "[[n = 1 to 5000 |x]]"] {
            assert!(scope.text(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9a-z()+*/<=,${}\\[\\]| -]{0,40}") {
            let params = params();
            let mut scope = Scope { params: &params, tables: &[], numbers: Vec::new() };
            let _ = scope.number(&text);
            let _ = scope.text(&text);
        }
    }
}
