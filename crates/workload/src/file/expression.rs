//! Numbers of a workload file that follow from others: `own-rows / rows`, `max(rows(fact) - 1, 1)`; and texts with such
//! numbers: `:id${n}`, or `[[n = 2 to rows |, (:id${n})]]` for a piece that is repeated. Their language is that of pgbench's expressions.

use std::ops::RangeInclusive;

use crate::data::fact_groups;
use crate::params::Params;
use crate::script::{EvaluationError, FILE_FUNCTIONS, Random, Value, amount, no_keyword};
use crate::source::{Node, UserError};
use crate::table::{RowCount, Table};

/// Most repetitions of a piece of text or of written-out steps.
pub(super) const MAX_COPIES: i64 = 1000;

/// Scope of the names in an expression.
pub(super) struct Scope<'p> {
    pub(super) params: &'p Params,
    pub(super) tables: &'p [Table],
    /// Numbers of the repetitions around it.
    pub(super) numbers: Vec<(String, i64)>,
}

impl Node<'_> {
    pub(super) fn is_amount(self) -> bool {
        self.integer().is_some() || self.raw_text().is_ok()
    }

    /// A number, or an expression that gives one.
    pub(super) fn computed(self, scope: &Scope<'_>) -> Result<i64, UserError> {
        if let Some(number) = self.integer() {
            return Ok(number);
        }
        let text = self.text().map_err(|_| self.must_be("a number, or an expression in quotes"))?;
        scope.number(text).map_err(|e| self.error(format!("'{}': {e}", self.key)))
    }

    pub(super) fn amount(self, scope: &Scope<'_>, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        let number = self.computed(scope)?;
        let from = self.text().map_or(String::new(), |text| format!(" ('{text}' with some parameters)"));
        self.within(number, &from, range)
    }
}

impl Scope<'_> {
    /// Value of the expression `text`, or why it has none.
    pub(super) fn number(&self, text: &str) -> Result<i64, String> {
        let parsed =
            amount(text).map_err(|(at, what)| format!("{what}, at '{}'", text.get(at..).unwrap_or_default()))?;
        // Also those of branches that are not taken. Counting distinct values is long, and cannot fail.
        for name in parsed.variables().into_iter().filter(|name| !name.starts_with("distinct(")) {
            self.name(name).map_err(|e| e.to_string())?;
        }
        // It has no function that draws.
        match parsed.value(&|name| self.name(name), &mut Random::new(0)) {
            Ok(Value::Int(number)) => Ok(number),
            Ok(other) => Err(format!("{} is no whole number", other.text())),
            Err(e) => Err(e.to_string()),
        }
    }

    /// `text` with its numbers and repeated pieces written out.
    pub(super) fn text(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '[']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            if let Some(after) = from.strip_prefix("${") {
                let (expression, after) = after.split_once('}').ok_or_else(|| format!("'{from}' is not closed"))?;
                out.push_str(&self.number(expression)?.to_string());
                rest = after;
            } else if let Some((piece, after)) = from.strip_prefix("[[").and_then(|after| after.split_once("]]"))
                && let Some((head, text)) = piece.split_once('|')
            {
                let wrong = || {
                    format!(
                        "a repetition is '[[NAME = FIRST to LAST | TEXT]]' with at most {MAX_COPIES} copies, not '[[{piece}]]'"
                    )
                };
                let (name, range) = head.split_once(" = ").ok_or_else(wrong)?;
                no_keyword(name.trim())?;
                let (first, last) = range.split_once(" to ").ok_or_else(wrong)?;
                let (first, last) = (self.number(first)?, self.number(last)?);
                if last.saturating_sub(first) >= MAX_COPIES {
                    return Err(wrong());
                }
                for number in first..=last {
                    self.numbers.push((name.trim().to_owned(), number));
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

    /// Value of a repetition's number, a parameter, `rows(table)` (of a job, if jobs own them) or `distinct(column)`.
    fn name(&self, name: &str) -> Result<Value, EvaluationError> {
        let of = |function: &str| name.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')');
        let table = of("rows").and_then(|name| self.tables.iter().find(|t| t.name == name));
        let rows = table.map(|table| match table.rows {
            RowCount::PerJob(_) => table.batch_rows(self.params),
            _ => table.total_rows(self.params, 0),
        });
        let groups = || of("distinct").map(|column| fact_groups(column, self.params));
        let number = self.numbers.iter().rev().find(|(n, _)| n == name).map(|(_, number)| *number);
        let counted = || rows.or_else(groups).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        number.or_else(|| self.params.value(name)).or_else(counted).map(Value::Int).ok_or_else(|| {
            let (what, name, known): (_, _, Vec<&str>) = match of("rows") {
                Some(table) => ("table", table, self.tables.iter().map(|t| t.name.as_str()).collect()),
                None => ("parameter", name, self.params.names().collect()),
            };
            let near = loadline_model::format::did_you_mean(name, known.iter().copied());
            let known = known.join(", ");
            EvaluationError::UnknownName(format!(
                "there is no {what} '{name}'{near} (known: {known}; {FILE_FUNCTIONS}); operators have spaces around them"
            ))
        })
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
            ("5 * (rows > 24) + (n < 3)", 5),
            ("if(0, 1 / 0, 2)", 2),
            ("(rows > 1) * (n > 3) + (rows % 7 = 4)", 1),
        ] {
            assert_eq!(scope.number(text), Ok(value), "{text}");
        }
        for text in [
            "", "rows-1", "rows +", "(rows", "1 / 0", "rows rows", "sum(1, 2)", "if(1, 1 / 0, 2)", "rows(nothing)",
            "min(1)", "random(1, 2)", "1.5", "rows < 2 < 3", "9223372036854775807 + rows", "rows > 1 and n > 1",
            "rows or n", "not n", "if((n < 9) is true, 1, 2)", "n isnull", "n notnull", "TRUE", "if(0, typo, 2)",
            "if(1, 2, rows(typo))",
        ] {
            assert!(scope.number(text).is_err(), "{text}");
        }
        assert!(scope.number("n AND 1").unwrap_err().contains("'and' is a keyword"));
        assert!(scope.number("rows(lokup)").unwrap_err().contains("no table 'lokup': did you mean 'lookup'"));
        assert!(scope.number(&"(".repeat(1000)).unwrap_err().contains("too deep"));
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
        for text in ["${", "${nothing}", "[[n | x]]", "[[end = 1 to 2 | x]]", "[[n = 1 to 5000 |x]]"] {
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
