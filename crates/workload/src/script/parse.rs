//! The parser of expressions. Levels of precedence as in PostgreSQL 15, `src/bin/pgbench/exprparse.y`.

use crate::script::expression::Expression::{self, Call, Constant, Variable};
use crate::script::function::FUNCTIONS;
use crate::script::token::{KEYWORDS, Token, tokens};
use crate::script::value::Value;

/// Deeper expressions are refused, because evaluation recurses.
const MAX_DEPTH: usize = 200;

type Failure = (usize, String);

/// The expression that `text` is; or what is wrong, and at which byte of it.
pub(crate) fn expression(text: &str) -> Result<Expression, Failure> {
    parse(text, false)
}

/// The expression of a workload file that `text` is: it names variables without a colon and has functions of its own, and comparisons are
/// 1 or 0.
pub(crate) fn amount(text: &str) -> Result<Expression, Failure> {
    parse(text, true)
}

fn parse(text: &str, of_file: bool) -> Result<Expression, Failure> {
    let mut parser = Parser { tokens: tokens(text, of_file)?, at: 0, end: text.trim_end().len(), depth: 0, of_file };
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
    of_file: bool,
}

/// Levels: OR, AND, NOT, IS, comparisons, bits, sums, products; what is above them are operands.
const NOT: usize = 2;
const IS: usize = 3;
const COMPARISONS: usize = 4;
const BITS: usize = 5;
const OPERANDS: usize = 8;

const BINARY: &[(usize, &[&str])] = &[
    (0, &["or"]),
    (1, &["and"]),
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
                };
                (*at, format!("found {found} where {wanted} is expected"))
            }
        }
    }

    /// Takes the next token if it is this.
    fn take(&mut self, wanted: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some((_, Token::Word(word))) if word == wanted);
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
        let Some((_, Token::Word(word))) = self.tokens.get(self.at) else { return Ok(None) };
        let (word, swapped) = match word.as_str() {
            ">" => ("<", true),
            ">=" => ("<=", true),
            other => (other, false),
        };
        let all = BINARY.iter().filter(|(level, _)| *level >= least);
        let mut all = all.flat_map(|(level, words)| words.iter().map(move |known| (*level, *known)));
        let Some((level, operator)) = all.find(|(_, known)| *known == word) else { return Ok(None) };
        if level == COMPARISONS && last == COMPARISONS {
            return Err(self.unexpected("the end (comparisons do not chain)"));
        }
        self.at += 1;
        let right = self.level(level + 1)?;
        // pgbench evaluates `a > b` as `b < a`, so b draws its random numbers first.
        let both = if swapped { vec![right, left] } else { vec![left, right] };
        let made = Call(operator, both);
        let is_number = self.of_file && level == COMPARISONS;
        let number = |n| Constant(Value::Int(n));
        let made = if is_number { Expression::Case(vec![(made, number(1))], Box::new(number(0))) } else { made };
        Ok(Some((made, level)))
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
            Token::Word(word) if !KEYWORDS.contains(&word.as_str()) && word.starts_with(char::is_alphabetic) => {
                if !self.of_file {
                    return self.function(at, &word);
                }
                if self.take("(") { self.function_of_file(at, &word) } else { Ok(Variable(word)) }
            }
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
        let mut arguments = self.arguments()?;
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

    /// Arguments of a function, behind the parenthesis.
    fn arguments(&mut self) -> Result<Vec<Expression>, Failure> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.level(0)?);
        }
        Ok(arguments)
    }

    /// A function of workload files. What it says of a table or column is a variable: `rows(fact)`.
    fn function_of_file(&mut self, at: usize, name: &str) -> Result<Expression, Failure> {
        let arguments = self.arguments()?;
        match (name, &arguments[..]) {
            ("rows" | "distinct", [Variable(of)]) => Ok(Variable(format!("{name}({of})"))),
            ("min", [_, _]) => Ok(Call("least", arguments)),
            ("max", [_, _]) => Ok(Call("greatest", arguments)),
            ("if", [condition, result, otherwise]) => {
                Ok(Expression::Case(vec![(condition.clone(), result.clone())], Box::new(otherwise.clone())))
            }
            _ => Err((at, format!("there is no function '{name}' with these arguments (known: {FILE_FUNCTIONS})"))),
        }
    }
}

pub(crate) const FILE_FUNCTIONS: &str =
    "min(a, b), max(a, b), if(condition, a, b), rows(table), distinct(column of fact)";
