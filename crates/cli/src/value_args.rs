//! Values of flags that are names of another crate's type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses one of `values`: each has its name, its help and what it means.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let shown = values.each_ref().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(shown).try_map(move |text| {
        let found = values.iter().find(|(name, ..)| *name == text);
        found.map(|(.., value)| value.clone()).ok_or("unknown value")
    })
}
