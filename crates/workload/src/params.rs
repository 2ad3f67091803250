//! Parameters of a workload, and their values.

use std::collections::BTreeMap;

use loadline_model::plan::DEFAULT_SIZE_BYTES;
use thiserror::Error;

/// A parameter of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// Default.
    pub default: i64,
    /// Lowest allowed value.
    pub min: i64,
    /// Highest allowed value.
    pub max: i64,
    /// Meaning, with unit.
    pub meaning: &'static str,
}

/// Values of all parameters of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<&'static str, i64>,
    size_bytes: u64,
}

/// A parameter that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("workload {workload} has no parameter '{name}': it has {known}")]
    Unknown {
        /// Code of the workload.
        workload: &'static str,
        /// The unknown name.
        name: String,
        /// The names it has.
        known: String,
    },
    /// Outside its range.
    #[error("parameter '{name}' of {workload} is {value}, but must be between {min} and {max}: {meaning}")]
    Range {
        /// Code of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// The given value.
        value: i64,
        /// Lowest allowed.
        min: i64,
        /// Highest allowed.
        max: i64,
        /// Meaning of the parameter.
        meaning: &'static str,
    },
    /// Not in its list of allowed values.
    #[error("parameter '{name}' of {workload} is {value}, but must be one of {allowed}: {meaning}")]
    Choice {
        /// Code of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// The given value.
        value: i64,
        /// The allowed values.
        allowed: String,
        /// Meaning of the parameter.
        meaning: &'static str,
    },
    /// Values with which the workload's file gives no program.
    #[error("the parameters do not fit together: {why}")]
    Unfit {
        /// Place in the file, and what is allowed.
        why: String,
    },
    /// Larger than another parameter that is its limit.
    #[error("parameter '{name}' of {workload} is {value}, but must be at most '{limit}', which is {most}")]
    Above {
        /// Code of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: i64,
        /// Name of the other parameter.
        limit: &'static str,
        /// The other parameter's value.
        most: i64,
    },
}

impl Params {
    /// The defaults of `params`, replaced by those in `given`. `choices`: parameters with a list of allowed values. `at_most`:
    /// pairs of which the first must not be larger than the second.
    pub(crate) fn new(
        workload: &'static str,
        params: &[Param],
        choices: &[(&'static str, &'static [i64])],
        at_most: &[(&'static str, &'static str)],
        given: &BTreeMap<String, i64>,
    ) -> Result<Params, ParamError> {
        let mut values: BTreeMap<&'static str, i64> = params.iter().map(|p| (p.name, p.default)).collect();
        for (name, value) in given {
            let Some(p) = params.iter().find(|p| p.name == name) else {
                let known = params.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
                return Err(ParamError::Unknown { workload, name: name.clone(), known });
            };
            let (name, value, meaning) = (p.name, *value, p.meaning);
            if !(p.min..=p.max).contains(&value) {
                return Err(ParamError::Range { workload, name, value, min: p.min, max: p.max, meaning });
            }
            if let Some((_, choice)) = choices.iter().find(|(of, list)| *of == name && !list.contains(&value)) {
                let allowed = choice.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                return Err(ParamError::Choice { workload, name, value, allowed, meaning });
            }
            values.insert(name, value);
        }
        let value = |name: &str| values.get(name).copied().unwrap_or(0);
        if let Some((name, limit)) = at_most.iter().find(|(name, limit)| value(name) > value(limit)) {
            return Err(ParamError::Above { workload, name, value: value(name), limit, most: value(limit) });
        }
        Ok(Params { values, size_bytes: DEFAULT_SIZE_BYTES })
    }

    /// Value of `name`; 0 if the workload has no such parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// Value of `name`, if the workload has such a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    /// Names of all parameters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    /// The same parameters for a data set of `bytes` bytes.
    #[must_use]
    pub fn with_size(self, bytes: u64) -> Params {
        Params { size_bytes: bytes, ..self }
    }

    /// Size of the data set, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// All values by name.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, i64> {
        self.values.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }
}
