//! The kernels of [`loadline_workload::kernel`] in the languages of the in-database drivers: `kernels.toml`.

use std::collections::BTreeMap;

use loadline_workload::Kernel;
use loadline_workload::kernel::{ALPHABET, FIBONACCI, MODULUS, PIECE, STARTS, TEXT, ZERO};
use serde::Deserialize;

use crate::descriptor::{Embedded, Routines};

static KERNELS: Embedded<Kernels> = Embedded::new("src/kernels.toml", include_str!("kernels.toml"));

/// The file: texts, and the words in which languages with the same texts differ.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernels {
    texts: BTreeMap<String, Routines>,
    words: BTreeMap<String, BTreeMap<String, String>>,
}

/// A block that computes `times` rounds, starting from `sequence`, and checks the result, with the `texts` and `words` of a language.
/// `fibonacci` is the recursive routine: its declaration in the block (empty if it is not local) and its name.
pub(crate) fn compute(
    [texts, words]: &[String; 2],
    fibonacci: [&str; 2],
    kernel: Kernel,
    times: u32,
    sequence: &str,
) -> String {
    let name = format!("{kernel:?}").to_lowercase();
    let text = |name: &str| KERNELS.texts.get(texts).map_or(String::new(), |texts| texts.text(name, &[]));
    let (declare, round) = (text(&format!("{name}-declare")), text(&name));
    // The search for primes starts at 2.
    let (number, before) = if kernel == Kernel::Prime { ("l_n", 1) } else { ("l_i", 0) };
    let numbers = [
        ("before", before),
        ("first", before + 1),
        ("expected", kernel.expected(times)),
        ("starts", STARTS.into()),
        ("zero", ZERO.into()),
        ("place", FIBONACCI.0.into()),
        ("count", FIBONACCI.1),
        ("modulus", MODULUS),
        ("times", times.into()),
        ("piece", PIECE as i64),
        ("behind", PIECE as i64 + 1),
        ("initial-length", TEXT.len() as i64),
    ]
    .map(|(name, number)| (name, number.to_string()));
    let mut parts = vec![("declare", declare.as_str()), ("round", &round), ("number", number)];
    parts.extend([("recursive", fibonacci[0]), ("fibonacci-name", fibonacci[1])]);
    parts.extend(KERNELS.words.get(words).into_iter().flatten().map(|(word, is)| (word.as_str(), is.as_str())));
    parts.extend(numbers.iter().map(|(name, number)| (*name, number.as_str())));
    parts.extend([("initial", TEXT), ("alphabet", ALPHABET), ("sequence", sequence)]);
    KERNELS.texts.get(texts).map_or(String::new(), |texts| texts.text("block", &parts))
}
