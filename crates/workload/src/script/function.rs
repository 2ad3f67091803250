//! Operators and functions of expressions, by their names in scripts. Source: PostgreSQL 15, `evalStandardFunc` of
//! `src/bin/pgbench/pgbench.c`.

use crate::script::random::{Random, fnv1a, murmur2, permute};
use crate::script::value::EvaluationError as E;
use crate::script::value::Value::{self, Bool, Double, Int, Null};

/// Names of functions, with the least and the most arguments.
pub(crate) const FUNCTIONS: &[(&[&str], usize, usize)] = &[
    (&["pi"], 0, 0),
    (&["abs", "debug", "double", "exp", "int", "ln", "sqrt"], 1, 1),
    (&["hash", "hash_fnv1a", "hash_murmur2"], 1, 2),
    (&["greatest", "least"], 1, usize::MAX),
    (&["mod", "pow", "power", "random"], 2, 2),
    (&["permute"], 2, 3),
    (&["random_exponential", "random_gaussian", "random_zipfian"], 3, 3),
];

/// The value of a call. NULL if an argument is, except for IS and debug.
pub(crate) fn call(function: &'static str, arguments: &[Value], random: &mut Random) -> Result<Value, E> {
    if arguments.contains(&Null) && !matches!(function, "is" | "debug") {
        return Ok(Null);
    }
    match (function, arguments) {
        ("pi", []) => Ok(Double(std::f64::consts::PI)),
        ("not", [a]) => Ok(Bool(!a.bool()?)),
        // The first did not decide.
        ("and" | "or", [_, last]) => Ok(*last),
        ("debug", [a]) => Ok(*a),
        ("abs", [Double(d)]) => Ok(Double(d.abs())),
        // The least integer has no positive counterpart; pgbench returns it as it is.
        ("abs", [a]) => Ok(Int(a.int()?.wrapping_abs())),
        ("double", [a]) => Ok(Double(a.double()?)),
        ("int", [a]) => Ok(Int(a.int()?)),
        ("sqrt", [a]) => Ok(Double(a.double()?.sqrt())),
        ("ln", [a]) => Ok(Double(a.double()?.ln())),
        ("exp", [a]) => Ok(Double(a.double()?.exp())),
        ("is", [a, b]) => Ok(Bool(a == b)),
        ("pow" | "power", [a, b]) => Ok(Double(a.double()?.powf(b.double()?))),
        ("%" | "mod", [a, b]) => match (a.int()?, b.int()?) {
            (_, 0) => Err(E::DivisionByZero),
            (a, b) => Ok(Int(a.wrapping_rem(b))),
        },
        ("&", [a, b]) => Ok(Int(a.int()? & b.int()?)),
        ("|", [a, b]) => Ok(Int(a.int()? | b.int()?)),
        ("#", [a, b]) => Ok(Int(a.int()? ^ b.int()?)),
        ("<<", [a, b]) => Ok(Int(a.int()?.wrapping_shl(distance(b.int()?)))),
        (">>", [a, b]) => Ok(Int(a.int()?.wrapping_shr(distance(b.int()?)))),
        ("hash_fnv1a", [a, seed]) => Ok(Int(fnv1a(a.int()?, seed.int()?))),
        ("hash" | "hash_murmur2", [a, seed]) => Ok(Int(murmur2(a.int()?, seed.int()?))),
        ("permute", [a, size, seed]) => match size.int()? {
            size if size <= 0 => Err(argument("permute", format!("the size must be above 0, it is {size}"))),
            size => Ok(Int(permute(a.int()?, size, seed.int()?))),
        },
        ("least" | "greatest", [_, ..]) => extreme(function == "greatest", arguments),
        ("random", [min, max]) => drawn(function, [*min, *max], None, random),
        ("random_exponential" | "random_gaussian" | "random_zipfian", [min, max, p]) => {
            drawn(function, [*min, *max], Some(*p), random)
        }
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
fn of_doubles(function: &str, a: f64, b: f64) -> Result<Value, E> {
    Ok(match function {
        "+" => Double(a + b),
        "-" => Double(a - b),
        "*" => Double(a * b),
        "/" => Double(a / b),
        "=" => Bool(a == b),
        "<>" | "!=" => Bool(a != b),
        "<=" => Bool(a <= b),
        "<" => Bool(a < b),
        _ => return Err(E::Program),
    })
}

fn of_integers(function: &str, a: i64, b: i64) -> Result<Value, E> {
    let checked = |result: Option<i64>, what| result.map(Int).ok_or(E::OutOfRange(what));
    match function {
        "+" => checked(a.checked_add(b), "the sum"),
        "-" => checked(a.checked_sub(b), "the difference"),
        "*" => checked(a.checked_mul(b), "the product"),
        "/" if b == 0 => Err(E::DivisionByZero),
        "/" => checked(a.checked_div(b), "the quotient"),
        "=" => Ok(Bool(a == b)),
        "<>" | "!=" => Ok(Bool(a != b)),
        "<=" => Ok(Bool(a <= b)),
        "<" => Ok(Bool(a < b)),
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
