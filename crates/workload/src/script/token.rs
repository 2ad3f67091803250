//! Tokens of expressions. Source: PostgreSQL 15, `src/bin/pgbench/exprscan.l`.

use crate::script::value::{Value, is_name_char};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Constant(Value),
    /// 9223372036854775808, which only a minus before it makes an integer.
    BeyondMax,
    Variable(String),
    /// A symbol, or a name of a function or a keyword, in lower case.
    Word(String),
}

/// Longest first.
const SYMBOLS: &[&str] =
    &["<<", ">>", "<=", ">=", "<>", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "&", "|", "#", "~"];

pub(super) const KEYWORDS: &[&str] =
    &["and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end", "null", "true", "false"];

/// Workload files have no keywords: a comparison is a number there, which `and` and `is true` do not take.
pub(crate) fn no_keyword(word: &str) -> Result<(), String> {
    if !KEYWORDS.contains(&word) {
        return Ok(());
    }
    Err(format!(
        "'{word}' is a keyword of pgbench's expressions, which a workload file has neither as a name nor as an operator: \
         comparisons are 1 or 0, so combine them with *, + and if(condition, a, b)"
    ))
}

/// The tokens of `text` with their byte offsets; or what is wrong, and where. In a workload file (`of_file`) words may have hyphens.
pub(crate) fn tokens(text: &str, of_file: bool) -> Result<Vec<(usize, Token)>, (usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if let Some(eol) = rest.strip_prefix('\\').filter(|r| r.trim_start_matches('\r').starts_with('\n')) {
            at += 1 + eol.find('\n').unwrap_or(0) + 1;
            continue;
        }
        let (length, token) = if c == ':' {
            let name: String = rest[1..].chars().take_while(|c| is_name_char(*c)).collect();
            if name.is_empty() {
                return Err((at, "a variable's name is missing after \":\"".to_owned()));
            }
            (1 + name.len(), Token::Variable(name))
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
            number(rest).map_err(|what| (at, what))?
        } else if c.is_ascii_alphabetic() {
            let is_one = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || (of_file && *c == '-');
            let word: String = rest.chars().take_while(is_one).collect();
            let lower = word.to_ascii_lowercase();
            if of_file {
                no_keyword(&lower).map_err(|what| (at, what))?;
            }
            let token = match lower.as_str() {
                "null" => Token::Constant(Value::Null),
                "true" => Token::Constant(Value::Bool(true)),
                "false" => Token::Constant(Value::Bool(false)),
                _ => Token::Word(lower),
            };
            (word.len(), token)
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            (symbol.len(), Token::Word((*symbol).to_owned()))
        } else {
            return Err((at, format!("unexpected character {c:?}")));
        };
        found.push((at, token));
        at += length;
    }
    Ok(found)
}

fn number(rest: &str) -> Result<(usize, Token), String> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    let mut length = whole;
    let mut real = false;
    if rest[length..].starts_with('.') {
        real = true;
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..]);
        if exponent > 0 {
            real = true;
            length += 1 + sign + exponent;
        }
    }
    let text = &rest[..length];
    if real {
        let value: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
        return if value.is_finite() {
            Ok((length, Token::Constant(Value::Double(value))))
        } else {
            Err(format!("{text} is too large for a double"))
        };
    }
    match text.parse() {
        Ok(i) => Ok((length, Token::Constant(Value::Int(i)))),
        Err(_) if text == "9223372036854775808" => Ok((length, Token::BeyondMax)),
        Err(_) => Err(format!("{text} is too large for a 64-bit integer")),
    }
}
