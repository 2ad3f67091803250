//! Expressions and their evaluation. Source: PostgreSQL 15, `src/bin/pgbench/{exprparse.y,pgbench.c}`.

use crate::script::error::EvaluationError;
use crate::script::function::call;
use crate::script::random::Random;
use crate::script::value::{Value, Variables};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    Variable(String),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    /// Conditions with their results, then the result of none.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// An operator or a function by its name, with its operands.
    Call(&'static str, Vec<Expression>),
}

impl Expression {
    /// Value. Operands are evaluated from left to right, which decides who draws which random number.
    pub(crate) fn value(&self, variables: &Variables, random: &mut Random) -> Result<Value, EvaluationError> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(name) => variables.value(name),
            Self::And(both) => both_or_either(both, false, variables, random),
            Self::Or(both) => both_or_either(both, true, variables, random),
            Self::Case(arms, otherwise) => {
                for (condition, result) in arms {
                    if condition.value(variables, random)?.holds() {
                        return result.value(variables, random);
                    }
                }
                otherwise.value(variables, random)
            }
            Self::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.value(variables, random)?);
                }
                call(function, &values, random)
            }
        }
    }

    /// Whether the variable `name` is in it. A hash without a seed uses `default_seed`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Variable(of) => of == name,
            Self::And(both) | Self::Or(both) => both.iter().any(|of| of.uses(name)),
            Self::Case(arms, otherwise) => {
                arms.iter().any(|(condition, result)| condition.uses(name) || result.uses(name)) || otherwise.uses(name)
            }
            Self::Call(_, arguments) => arguments.iter().any(|of| of.uses(name)),
        }
    }
}

/// AND (`decides` is false) and OR (true). The second operand is only evaluated if the first does not decide. Unlike in
/// SQL, NULL as the first operand decides too: pgbench's `null or true` is NULL.
fn both_or_either(
    [left, right]: &[Expression; 2],
    decides: bool,
    variables: &Variables,
    random: &mut Random,
) -> Result<Value, EvaluationError> {
    let left = left.value(variables, random)?;
    if left == Value::Null || left.bool()? == decides {
        return Ok(left);
    }
    let right = right.value(variables, random)?;
    if right != Value::Null {
        right.bool()?;
    }
    Ok(right)
}
