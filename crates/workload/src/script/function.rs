//! Operators and functions of expressions. Source: PostgreSQL 15, `evalStandardFunc` of `src/bin/pgbench/pgbench.c`.

use crate::script::error::EvaluationError as E;
use crate::script::random::{Random, fnv1a, murmur2, permute};
use crate::script::value::Value::{self, Bool, Double, Int, Null};

/// An operator or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    LessOrEqual,
    Less,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    Fnv1a,
    Murmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Functions by name, with the least and the most arguments.
pub(crate) const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("debug", Function::Debug, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::Murmur2, 1, 2),
    ("hash_fnv1a", Function::Fnv1a, 1, 2),
    ("hash_murmur2", Function::Murmur2, 1, 2),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("permute", Function::Permute, 2, 3),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// The value of a call. NULL if an argument is, except for IS and debug.
pub(crate) fn call(function: Function, arguments: &[Value], random: &mut Random) -> Result<Value, E> {
    use Function as F;
    if arguments.contains(&Null) && !matches!(function, F::Is | F::Debug) {
        return Ok(Null);
    }
    match (function, arguments) {
        (F::Pi, []) => Ok(Double(std::f64::consts::PI)),
        (F::Not, [a]) => Ok(Bool(!a.bool()?)),
        (F::Debug, [a]) => Ok(*a),
        (F::Abs, [Double(d)]) => Ok(Double(d.abs())),
        // The least integer has no positive counterpart; pgbench returns it as it is.
        (F::Abs, [a]) => Ok(Int(a.int()?.wrapping_abs())),
        (F::Double, [a]) => Ok(Double(a.double()?)),
        (F::Int, [a]) => Ok(Int(a.int()?)),
        (F::Sqrt, [a]) => Ok(Double(a.double()?.sqrt())),
        (F::Ln, [a]) => Ok(Double(a.double()?.ln())),
        (F::Exp, [a]) => Ok(Double(a.double()?.exp())),
        (F::Is, [a, b]) => Ok(Bool(a == b)),
        (F::Power, [a, b]) => Ok(Double(a.double()?.powf(b.double()?))),
        (F::Modulo, [a, b]) => match (a.int()?, b.int()?) {
            (_, 0) => Err(E::DivisionByZero),
            (a, b) => Ok(Int(a.wrapping_rem(b))),
        },
        (F::BitAnd, [a, b]) => Ok(Int(a.int()? & b.int()?)),
        (F::BitOr, [a, b]) => Ok(Int(a.int()? | b.int()?)),
        (F::BitXor, [a, b]) => Ok(Int(a.int()? ^ b.int()?)),
        (F::ShiftLeft, [a, b]) => Ok(Int(a.int()?.wrapping_shl(distance(b.int()?)))),
        (F::ShiftRight, [a, b]) => Ok(Int(a.int()?.wrapping_shr(distance(b.int()?)))),
        (F::Fnv1a, [a, seed]) => Ok(Int(fnv1a(a.int()?, seed.int()?))),
        (F::Murmur2, [a, seed]) => Ok(Int(murmur2(a.int()?, seed.int()?))),
        (F::Permute, [a, size, seed]) => match size.int()? {
            size if size <= 0 => Err(argument("permute", format!("the size must be above 0, it is {size}"))),
            size => Ok(Int(permute(a.int()?, size, seed.int()?))),
        },
        (F::Least | F::Greatest, [_, ..]) => extreme(function == F::Greatest, arguments),
        (F::Random, [min, max]) => drawn("random", [*min, *max], None, random),
        (F::RandomExponential, [min, max, p]) => drawn("random_exponential", [*min, *max], Some(*p), random),
        (F::RandomGaussian, [min, max, p]) => drawn("random_gaussian", [*min, *max], Some(*p), random),
        (F::RandomZipfian, [min, max, p]) => drawn("random_zipfian", [*min, *max], Some(*p), random),
        (_, [a @ Double(_), b] | [a, b @ Double(_)]) => of_doubles(function, a.double()?, b.double()?),
        (_, [a, b]) => of_integers(function, a.int()?, b.int()?),
        _ => Err(E::Program),
    }
}

/// Shifts count modulo 64, as the processors do for which pgbench is compiled; C leaves it undefined.
#[allow(clippy::cast_possible_truncation)]
fn distance(bits: i64) -> u32 {
    (bits & 63) as u32
}

fn argument(function: &'static str, what: String) -> E {
    E::Argument { function, what }
}

#[allow(clippy::float_cmp)] // The user's own comparison.
fn of_doubles(function: Function, a: f64, b: f64) -> Result<Value, E> {
    Ok(match function {
        Function::Add => Double(a + b),
        Function::Subtract => Double(a - b),
        Function::Multiply => Double(a * b),
        Function::Divide => Double(a / b),
        Function::Equal => Bool(a == b),
        Function::NotEqual => Bool(a != b),
        Function::LessOrEqual => Bool(a <= b),
        Function::Less => Bool(a < b),
        _ => return Err(E::Program),
    })
}

fn of_integers(function: Function, a: i64, b: i64) -> Result<Value, E> {
    let checked = |result: Option<i64>, what| result.map(Int).ok_or(E::OutOfRange(what));
    match function {
        Function::Add => checked(a.checked_add(b), "the sum"),
        Function::Subtract => checked(a.checked_sub(b), "the difference"),
        Function::Multiply => checked(a.checked_mul(b), "the product"),
        Function::Divide if b == 0 => Err(E::DivisionByZero),
        Function::Divide => checked(a.checked_div(b), "the quotient"),
        Function::Equal => Ok(Bool(a == b)),
        Function::NotEqual => Ok(Bool(a != b)),
        Function::LessOrEqual => Ok(Bool(a <= b)),
        Function::Less => Ok(Bool(a < b)),
        _ => Err(E::Program),
    }
}

/// The least or the greatest: a double if any is one.
fn extreme(greatest: bool, values: &[Value]) -> Result<Value, E> {
    if values.iter().any(|v| matches!(v, Double(_))) {
        let doubles: Vec<f64> = values.iter().map(|v| v.double()).collect::<Result<_, _>>()?;
        let found = doubles.into_iter().reduce(|a, b| if (b > a) == greatest && b != a { b } else { a });
        return found.map(Double).ok_or(E::Program);
    }
    let integers: Vec<i64> = values.iter().map(|v| v.int()).collect::<Result<_, _>>()?;
    let found = if greatest { integers.into_iter().max() } else { integers.into_iter().min() };
    found.map(Int).ok_or(E::Program)
}

fn drawn(name: &'static str, range: [Value; 2], parameter: Option<Value>, random: &mut Random) -> Result<Value, E> {
    let (min, max) = (range[0].int()?, range[1].int()?);
    if min > max {
        return Err(argument(name, format!("the range from {min} to {max} is empty")));
    }
    if max.checked_sub(min).and_then(|d| d.checked_add(1)).is_none() {
        return Err(argument(name, format!("the range from {min} to {max} is too large")));
    }
    let Some(parameter) = parameter else { return Ok(Int(random.uniform(min, max))) };
    let parameter = parameter.double()?;
    let wanted = match name {
        "random_gaussian" if parameter >= 2.0 => return Ok(Int(random.gaussian(min, max, parameter))),
        "random_zipfian" if (1.001..=1000.0).contains(&parameter) => {
            return Ok(Int(random.zipfian(min, max, parameter)));
        }
        "random_exponential" if parameter > 0.0 => return Ok(Int(random.exponential(min, max, parameter))),
        "random_gaussian" => "2 or more",
        "random_zipfian" => "from 1.001 to 1000",
        _ => "above 0",
    };
    Err(argument(name, format!("the parameter must be {wanted}, it is {parameter}")))
}
