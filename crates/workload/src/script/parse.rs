//! The parser of expressions. Levels of precedence as in PostgreSQL 15, `src/bin/pgbench/exprparse.y`.

use crate::script::expression::Expression::{self, Call, Constant, Variable};
use crate::script::function::FUNCTIONS;
use crate::script::token::{Token, tokens};
use crate::script::value::Value;

/// Deeper expressions are refused, because evaluation recurses.
const MAX_DEPTH: usize = 200;

type Failure = (usize, String);

/// The expression that `text` is; or what is wrong, and at which byte of it.
pub(crate) fn expression(text: &str) -> Result<Expression, Failure> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.trim_end().len(), depth: 0 };
    let parsed = parser.level(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(parsed),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    depth: usize,
}

/// Levels: OR, AND, NOT, IS, comparisons, bits, sums, products; what is above them are operands.
const NOT: usize = 2;
const IS: usize = 3;
const COMPARISONS: usize = 4;
const BITS: usize = 5;
const OPERANDS: usize = 8;

const BINARY: &[(usize, &[&str])] = &[
    (COMPARISONS, &["=", "<>", "!=", "<", "<="]),
    (BITS, &["|", "#", "&", "<<", ">>"]),
    (6, &["+", "-"]),
    (7, &["*", "/", "%"]),
];

impl Parser {
    fn unexpected(&self, wanted: &str) -> Failure {
        match self.tokens.get(self.at) {
            None => (self.end, format!("the expression ends where {wanted} is expected")),
            Some((at, token)) => {
                let found = match token {
                    Token::Constant(value) => value.text(),
                    Token::BeyondMax => "9223372036854775808, which is too large,".to_owned(),
                    Token::Variable(name) => format!(":{name}"),
                    Token::Word(word) => format!("\"{word}\""),
                    Token::Symbol(symbol) => format!("\"{symbol}\""),
                };
                (*at, format!("found {found} where {wanted} is expected"))
            }
        }
    }

    /// Takes the next token if it is this symbol or word.
    fn take(&mut self, wanted: &str) -> bool {
        let found = match self.tokens.get(self.at) {
            Some((_, Token::Symbol(symbol))) => *symbol == wanted,
            Some((_, Token::Word(word))) => word == wanted,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Failure> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("\"{symbol}\""))) }
    }

    /// An expression of operators of `least` and the levels above it.
    fn level(&mut self, least: usize) -> Result<Expression, Failure> {
        self.depth += 1;
        let too_deep = |at| Err((at, "the expression is nested too deep".to_owned()));
        if self.depth > MAX_DEPTH {
            return too_deep(self.tokens.get(self.at).map_or(self.end, |t| t.0));
        }
        let mut left = self.prefix()?;
        let mut last = usize::MAX;
        // Left-associative chains nest to the left, so they count as depth too.
        let mut chain = 0;
        while let Some((next, level)) = self.infix(least, last, left.clone())? {
            chain += 1;
            if self.depth + chain > MAX_DEPTH {
                return too_deep(self.end);
            }
            (left, last) = (next, level);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `left` with the operator that follows it, if its level is at least `least`.
    fn infix(&mut self, least: usize, last: usize, left: Expression) -> Result<Option<(Expression, usize)>, Failure> {
        let start = self.at;
        if least == 0 && self.take("or") {
            return Ok(Some((Expression::Or(Box::new([left, self.level(1)?])), 0)));
        }
        if least <= 1 && self.take("and") {
            return Ok(Some((Expression::And(Box::new([left, self.level(2)?])), 1)));
        }
        if least <= IS {
            let mut made = None;
            if self.take("isnull") {
                made = Some((false, Value::Null));
            } else if self.take("notnull") {
                made = Some((true, Value::Null));
            } else if self.take("is") {
                let not = self.take("not");
                let Some((_, Token::Constant(v @ (Value::Null | Value::Bool(_))))) = self.tokens.get(self.at) else {
                    return Err(self.unexpected("NULL, TRUE or FALSE"));
                };
                made = Some((not, *v));
                self.at += 1;
            }
            if let Some((not, of)) = made {
                if last == IS {
                    self.at = start;
                    return Err(self.unexpected("the end (IS does not chain)"));
                }
                let is = Call("is", vec![left, Constant(of)]);
                return Ok(Some((if not { Call("not", vec![is]) } else { is }, IS)));
            }
        }
        let Some((_, Token::Symbol(symbol))) = self.tokens.get(self.at) else { return Ok(None) };
        let (symbol, swapped) = match *symbol {
            ">" => ("<", true),
            ">=" => ("<=", true),
            other => (other, false),
        };
        let found = BINARY.iter().find(|(level, symbols)| *level >= least && symbols.contains(&symbol));
        let Some((level, _)) = found else { return Ok(None) };
        if *level == COMPARISONS && last == COMPARISONS {
            return Err(self.unexpected("the end (comparisons do not chain)"));
        }
        self.at += 1;
        let right = self.level(level + 1)?;
        // pgbench evaluates `a > b` as `b < a`, so b draws its random numbers first.
        let both = if swapped { vec![right, left] } else { vec![left, right] };
        Ok(Some((Call(symbol, both), *level)))
    }

    fn prefix(&mut self) -> Result<Expression, Failure> {
        if self.take("not") {
            return Ok(Call("not", vec![self.level(NOT)?]));
        }
        if self.take("~") {
            return Ok(Call("#", vec![Constant(Value::Int(-1)), self.level(BITS + 1)?]));
        }
        if self.take("-") {
            if let Some((_, Token::BeyondMax)) = self.tokens.get(self.at) {
                self.at += 1;
                return Ok(Constant(Value::Int(i64::MIN)));
            }
            // pgbench's minus is a subtraction from the integer 0.
            return Ok(Call("-", vec![Constant(Value::Int(0)), self.level(OPERANDS)?]));
        }
        if self.take("+") {
            return self.level(OPERANDS);
        }
        if self.take("(") {
            let inner = self.level(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let Some((at, token)) = self.tokens.get(self.at).cloned() else { return Err(self.unexpected("an operand")) };
        self.at += 1;
        match token {
            Token::Constant(value) => Ok(Constant(value)),
            Token::Variable(name) => Ok(Variable(name)),
            Token::Word(word) if word == "case" => self.case(),
            Token::Word(word) if !KEYWORDS.contains(&word.as_str()) => self.function(at, &word),
            _ => {
                self.at -= 1;
                Err(self.unexpected("an operand"))
            }
        }
    }

    fn case(&mut self) -> Result<Expression, Failure> {
        let mut arms = Vec::new();
        while self.take("when") {
            let condition = self.level(0)?;
            if !self.take("then") {
                return Err(self.unexpected("THEN"));
            }
            arms.push((condition, self.level(0)?));
        }
        if arms.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.take("else") { self.level(0)? } else { Constant(Value::Null) };
        if self.take("end") { Ok(Expression::Case(arms, Box::new(otherwise))) } else { Err(self.unexpected("END")) }
    }

    fn function(&mut self, at: usize, name: &str) -> Result<Expression, Failure> {
        let mut all =
            FUNCTIONS.iter().flat_map(|(names, least, most)| names.iter().map(move |known| (*known, *least, *most)));
        let Some((known, least, most)) = all.find(|f| f.0 == name) else {
            let names: Vec<&str> = FUNCTIONS.iter().flat_map(|f| f.0).copied().collect();
            return Err((at, format!("unknown function \"{name}\"; there are {}", names.join(", "))));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.level(0)?);
        }
        let given = arguments.len();
        if !(least..=most).contains(&given) {
            let wanted = match (least, most) {
                (l, m) if l == m => l.to_string(),
                (l, usize::MAX) => format!("{l} or more"),
                (l, m) => format!("{l} to {m}"),
            };
            return Err((at, format!("{name} takes {wanted} arguments, not {given}")));
        }
        let seeded = known.starts_with("hash") || known == "permute";
        if seeded && given < most {
            arguments.push(Variable("default_seed".to_owned()));
        }
        Ok(Call(known, arguments))
    }
}

const KEYWORDS: &[&str] = &["and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end"];
