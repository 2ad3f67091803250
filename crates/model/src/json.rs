//! Stored data as JSON, made and read here once: its types are large, and each crate that did it itself would compile all of them again.

use serde_json::{Error, Value};

use crate::live::LiveLine;
use crate::{Activity, Manifest, TestRecord};

pub trait Json: Sized {
    fn from_json(text: &[u8]) -> Result<Self, Error>;

    /// An error, of a key of a map that is no text, is an internal one.
    fn to_json(&self) -> Result<Value, Error>;
}

macro_rules! json {
    ($($stored:ty),+) => {
        $(impl Json for $stored {
            fn from_json(text: &[u8]) -> Result<$stored, Error> {
                serde_json::from_slice(text)
            }

            fn to_json(&self) -> Result<Value, Error> {
                serde_json::to_value(self)
            }
        })+
    };
}

json!(Activity, LiveLine, Manifest, TestRecord);
