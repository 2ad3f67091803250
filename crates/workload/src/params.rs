//! Parameters of a workload, and their values.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use loadline_model::Keys;
use loadline_model::plan::DEFAULT_SIZE_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::source::{ANY, MAX_WORD, Node, UserError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Param {
    pub name: String,
    pub default: i64,
    pub min: i64,
    pub max: i64,
    /// The allowed values; empty if all between are.
    pub choices: Vec<i64>,
    /// Another parameter that it must not exceed.
    pub at_most: Option<String>,
    pub meaning: String,
}

impl Param {
    pub(crate) fn read_all(file: Node<'_>) -> Result<Vec<Param>, UserError> {
        let params = file.all_named("parameter", Param::read, |p| &p.name)?;
        let limit = |node: Node<'_>| node.opt("at-most", |name| name.param(&params, ANY).map(drop));
        file.all("parameter", limit)?;
        Ok(params)
    }

    fn read(node: Node<'_>) -> Result<Param, UserError> {
        node.fields(&["name", "default", "min", "max", "choices", "at-most", "meaning"])?;
        let min = node.need("min")?.number(ANY)?;
        let max = node.need("max")?.number(min..=i64::MAX)?;
        Ok(Param {
            name: node.need("name").and_then(|node| node.operand(node.name('-', MAX_WORD)?))?,
            default: node.need("default")?.number(min..=max)?,
            min,
            max,
            choices: node.all("choices", |choice| choice.number(min..=max))?,
            at_most: node.opt("at-most", Node::owned)?,
            meaning: node.need("meaning")?.owned()?,
        })
    }
}

impl Node<'_> {
    /// A type that reads itself, with names of parameters under these keys.
    pub(crate) fn read_naming<T: DeserializeOwned>(
        self,
        params: &[Param],
        keys: &[&'static str],
    ) -> Result<T, UserError> {
        let read = self.read()?;
        keys.iter().try_for_each(|key| self.need(key)?.param(params, ANY).map(drop))?;
        Ok(read)
    }

    /// The parameter of which this is the name. All its values must be within `range`.
    pub(crate) fn param(self, params: &[Param], range: RangeInclusive<i64>) -> Result<&Param, UserError> {
        let (key, name) = (self.key, self.text()?);
        let (_, param) = self.find(&format!("'{key}': the parameter"), name, params, |p| &p.name)?;
        if range.contains(&param.min) && range.contains(&param.max) {
            return Ok(param);
        }
        let (least, most, min, max) = (range.start(), range.end(), param.min, param.max);
        Err(self.error(format!(
            "'{key}' must be between {least} and {most}, but the parameter '{name}' can be {min} to {max}: narrow its \
             min and max"
        )))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<String, i64>,
    size_bytes: u64,
    /// Which keys are drawn; `None`: all alike.
    pub keys: Option<Keys>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamError {
    #[error("workload {workload} has no parameter '{name}': it has {known}")]
    Unknown { workload: String, name: String, known: String },
    #[error("parameter '{}' of {workload} is {value}, but must be {allowed}: {}", param.name, param.meaning)]
    Value { workload: String, param: Box<Param>, value: i64, allowed: String },
    /// Values with which the workload's file gives no program.
    #[error("the parameters do not fit together: {why}")]
    Unfit {
        /// Place in the file, and what is allowed.
        why: String,
    },
}

impl Params {
    /// The defaults of `params`, replaced by those in `given`.
    pub(crate) fn new(workload: &str, params: &[Param], given: &BTreeMap<String, i64>) -> Result<Params, ParamError> {
        let mut values: BTreeMap<String, i64> = params.iter().map(|p| (p.name.clone(), p.default)).collect();
        let workload = workload.to_owned();
        let refused = |param: &Param, value, allowed| {
            Err(ParamError::Value { workload: workload.clone(), param: Box::new(param.clone()), value, allowed })
        };
        for (name, value) in given {
            let Some(p) = params.iter().find(|p| p.name == *name) else {
                let known = params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(ParamError::Unknown { workload: workload.clone(), name: name.clone(), known });
            };
            if !(p.min..=p.max).contains(value) {
                return refused(p, *value, format!("between {} and {}", p.min, p.max));
            }
            if !p.choices.is_empty() && !p.choices.contains(value) {
                let choices: Vec<String> = p.choices.iter().map(i64::to_string).collect();
                return refused(p, *value, format!("one of {}", choices.join(", ")));
            }
            values.insert(name.clone(), *value);
        }
        for p in params {
            let value = values.get(&p.name).copied().unwrap_or(0);
            let limit = p.at_most.as_ref().and_then(|limit| Some((limit, *values.get(limit)?)));
            if let Some((limit, most)) = limit.filter(|(_, most)| value > *most) {
                return refused(p, value, format!("at most '{limit}', which is {most}"));
            }
        }
        Ok(Params { values, size_bytes: DEFAULT_SIZE_BYTES, keys: None })
    }

    /// Value of `name`; 0 if the workload has no such parameter.
    pub fn get(&self, name: &str) -> i64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// Value of `name`, if the workload has such a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    #[must_use]
    pub fn with_size(self, bytes: u64) -> Params {
        Params { size_bytes: bytes, ..self }
    }

    /// Size of the data set, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// These parameters with keys drawn so; `None`: all alike.
    #[must_use]
    pub fn with_keys(self, keys: Option<Keys>) -> Params {
        Params { keys, ..self }
    }

    pub fn to_map(&self) -> BTreeMap<String, i64> {
        self.values.clone()
    }
}
