//! Expressions and their evaluation. Source: PostgreSQL 15, `src/bin/pgbench/{exprparse.y,pgbench.c}`.

use crate::script::function::call;
use crate::script::random::Random;
use crate::script::value::{EvaluationError, Value};

pub(crate) type Names<'a> = &'a dyn Fn(&str) -> Result<Value, EvaluationError>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    Variable(String),
    /// Conditions with their results, then the result of none.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// An operator or a function by its name, with its operands.
    Call(&'static str, Vec<Expression>),
}

impl Expression {
    /// Value. Operands are evaluated from left to right, which decides who draws which random number.
    pub(crate) fn value(&self, names: Names<'_>, random: &mut Random) -> Result<Value, EvaluationError> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(name) => names(name),
            Self::Case(arms, otherwise) => {
                for (condition, result) in arms {
                    if condition.value(names, random)?.holds() {
                        return result.value(names, random);
                    }
                }
                otherwise.value(names, random)
            }
            Self::Call(function, arguments) => {
                let decides = match *function {
                    "and" => Some(false),
                    "or" => Some(true),
                    _ => None,
                };
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let value = argument.value(names, random)?;
                    // Then those after it are not evaluated. Unlike in SQL, NULL decides too: pgbench's `null or true` is NULL.
                    if let Some(decides) = decides
                        && (value == Value::Null || value.bool()? == decides)
                    {
                        return Ok(value);
                    }
                    values.push(value);
                }
                call(function, &values, random)
            }
        }
    }

    /// Whether the variable `name` is in it. A hash without a seed uses `default_seed`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.variables().contains(&name)
    }

    pub(crate) fn variables(&self) -> Vec<&str> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Variable(name) => vec![name],
            Self::Case(arms, otherwise) => {
                let arms = arms.iter().flat_map(|(condition, result)| [condition, result]);
                arms.chain([&**otherwise]).flat_map(Self::variables).collect()
            }
            Self::Call(_, arguments) => arguments.iter().flat_map(Self::variables).collect(),
        }
    }
}
