//! Which keys transactions draw, if not all alike.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::format::share_of;

/// How often each key of a table is drawn. Exponents and shares are whole millionths, because all languages compute with the same integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Keys {
    /// Key number k, from 1, as often as k^−s.
    Zipf {
        /// The exponent s, millionths.
        exponent: u64,
    },
    /// The first keys more often than the others; in each of the two parts, all alike.
    Hot {
        /// Share of the keys that are hot, millionths.
        keys: u64,
        /// Share of the draws that are of hot keys, millionths.
        draws: u64,
    },
}

pub const MILLION: u64 = 1_000_000;

fn millionths(number: f64) -> u64 {
    (number * MILLION as f64).round() as u64
}

impl Keys {
    pub fn from_figures([exponent, keys_pct, draws_pct]: [Option<f64>; 3]) -> Option<Keys> {
        let zipf = exponent.map(|s| Keys::Zipf { exponent: millionths(s) });
        let hot = keys_pct.zip(draws_pct).map(|of| <[f64; 2]>::from(of).map(|pct| millionths(pct / 100.0)));
        zipf.or_else(|| hot.map(|[keys, draws]| Keys::Hot { keys, draws }))
    }

    /// The exponent, and the two shares, %: what a test stores.
    pub fn figures(self) -> [Option<f64>; 3] {
        let of = |millionths: u64, one: f64| Some(millionths as f64 * one / MILLION as f64);
        match self {
            Keys::Zipf { exponent } => [of(exponent, 1.0), None, None],
            Keys::Hot { keys, draws } => [None, of(keys, 100.0), of(draws, 100.0)],
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figures() {
            [Some(exponent), ..] => write!(f, "zipf:{exponent}"),
            [_, keys, draws] => write!(f, "hot:{}%:{}%", keys.unwrap_or(0.0), draws.unwrap_or(0.0)),
        }
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Keys, String> {
        let refuse = |why: &str| Err(format!("keys '{text}': {why}"));
        match text.split(':').collect::<Vec<_>>()[..] {
            ["zipf", exponent] => match exponent.parse().map(millionths) {
                Ok(exponent) if (1..5 * MILLION).contains(&exponent) => Ok(Keys::Zipf { exponent }),
                _ => refuse("the exponent of zipf must be a number above 0 and below 5, such as zipf:1.1"),
            },
            ["hot", keys, draws] => match [share_of(keys).map(millionths), share_of(draws).map(millionths)] {
                [Ok(keys @ 1..MILLION), Ok(draws @ 1..MILLION)] => Ok(Keys::Hot { keys, draws }),
                _ => refuse("both shares must be above 0 % and below 100 %, such as hot:10%:90%"),
            },
            _ => refuse("write zipf:EXPONENT or hot:KEYS%:DRAWS%, such as zipf:1.1 or hot:10%:90%"),
        }
    }
}

impl TryFrom<String> for Keys {
    type Error = String;

    fn try_from(text: String) -> Result<Keys, String> {
        text.parse()
    }
}

impl From<Keys> for String {
    fn from(keys: Keys) -> String {
        keys.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_stored() {
        for text in ["zipf:1.1", "zipf:4.999999", "zipf:0.000001", "hot:10%:90%", "hot:0.0001%:12.5%"] {
            let keys: Keys = text.parse().unwrap();
            assert_eq!(keys.to_string(), text);
            assert_eq!(Keys::from_figures(keys.figures()), Some(keys));
        }
        assert_eq!(Keys::from_figures([None; 3]), None);
        for text in ["zipf:0", "zipf:5", "zipf:-1", "zipf:nan", "zipf:", "zipf", "hot:0:1%", "hot:1%:100%", "hot:9", ""]
        {
            assert!(text.parse::<Keys>().is_err_and(|e| e.contains(&format!("'{text}'"))), "{text}");
        }
    }
}
