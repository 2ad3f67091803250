//! The result of a query for one whole number.

use crate::error::TargetError;

/// A number, or NULL (the query found no rows to add up).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number(Option<i64>);

impl Number {
    /// Value; `None` is NULL, or no row.
    pub fn new(found: Option<i64>) -> Number {
        Number(found)
    }

    /// Parses what was found.
    pub(crate) fn read(text: Option<String>) -> Result<Number, TargetError> {
        let parse = |text: String| {
            let no_number =
                || TargetError::Statement(format!("the query returned '{text}', which is not a whole number"));
            text.parse().map_err(|_| no_number())
        };
        text.map(parse).transpose().map(Number::new)
    }

    /// The number; NULL counts as 0.
    #[must_use]
    pub fn or_zero(self) -> i64 {
        self.0.unwrap_or(0)
    }

    /// The number; NULL is an error, because it proves nothing.
    pub fn required(self) -> Result<i64, TargetError> {
        self.0.ok_or_else(|| {
            TargetError::Statement(
                "the query returned NULL or no row instead of a number: it found no rows to add up (if that is allowed, \
                 write COALESCE)"
                    .into(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn null_is_zero_only_on_request() {
        let of = |found: Option<&str>| Number::read(found.map(str::to_owned));
        let seven = of(Some("7")).unwrap();
        assert_eq!((seven.or_zero(), seven.required().unwrap()), (7, 7));
        let null = of(None).unwrap();
        assert_eq!(null.or_zero(), 0);
        assert!(null.required().unwrap_err().to_string().contains("NULL"));
        assert!(of(Some("1.5")).unwrap_err().to_string().contains("'1.5'"));
        assert_eq!(of(Some("0")).unwrap().required().unwrap(), 0);
    }
}
