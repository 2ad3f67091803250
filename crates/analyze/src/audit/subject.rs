//! What a header that is no id of ours means: the concepts of its words and the kind of its unit give the column. To read one more
//! header, add a word or a rule to `words.txt`.

use super::header::Header;
use super::words::{Rule, WORDS, find_column};

/// Marks of distributions.
const MARKS: [&str; 9] = ["min", "p50", "p75", "p90", "p95", "p99", "p999", "p9999", "max"];

impl Header {
    /// Words that mean nothing to us.
    pub(crate) fn unknown_words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).filter(|w| WORDS.concept(w).is_none())
    }

    fn has(&self, words: &[&str]) -> bool {
        self.words.iter().any(|w| words.contains(&w.as_str()))
    }

    /// Whether a unit says what it means, rather than words alone.
    pub(crate) fn is_by_unit(&self) -> bool {
        self.unit.is_some() && (self.bracketed || !self.words.is_empty())
    }

    /// The id of the column that it means, as far as its words are known; `strict` if all must be.
    pub(crate) fn meaning(&self, strict: bool) -> Option<&'static str> {
        if strict && self.unknown_words().next().is_some() || self.second {
            return None;
        }
        let mut concepts: Vec<&str> = self.words.iter().filter_map(|w| WORDS.concept(w)).collect();
        concepts.retain(|c| *c != "-");
        concepts.dedup();
        let (marks, plain): (Vec<&str>, Vec<&str>) = concepts.into_iter().partition(|c| MARKS.contains(c));
        match (marks.as_slice(), &self.unit) {
            ([mark], unit) if unit.as_ref().is_none_or(|u| u.kind == "time") => self.percentile(&plain, mark),
            ([], Some(unit)) => {
                let rule = || WORDS.rules.iter().find(|rule| rule.fits(&unit.kind, &plain));
                self.bare_time(&plain).or_else(|| rule().map(|rule| rule.id))
            }
            ([], None) => self.without_unit(&plain),
            _ => None,
        }
    }

    /// A time without a subject: a mean is that of transactions, a time of no more than its name that of the test.
    fn bare_time(&self, plain: &[&str]) -> Option<&'static str> {
        let unit = self.unit.as_ref().filter(|u| u.kind == "time")?;
        let mean = self.has(&["avg", "average", "mean"]) || self.words.is_empty() && unit.size < 1.0;
        match plain {
            [] | ["elapsed"] if mean => Some("commit_latency_ms"),
            [] | ["elapsed"] if self.words.is_empty() || self.has(&["time"]) => Some("elapsed_s"),
            _ => None,
        }
    }

    /// Without a unit, it is that which such figures have.
    fn without_unit(&self, plain: &[&str]) -> Option<&'static str> {
        let rate = self.has(&["throughput", "rate"]);
        let allowed = |kind: &str, rule: &Rule| match kind {
            "rate.any" | "rate.io" => rate,
            "share" => plain.iter().any(|c| matches!(*c, "cpu" | "hit" | "efficiency")),
            "time" => {
                plain.iter().any(|c| matches!(*c, "latency" | "service" | "elapsed")) || rule.id == "log_file_sync_ms"
            }
            "bytes" => *plain == ["block"] || *plain == ["block", "rate"] && self.has(&["size"]),
            "per_tx.any" => plain.contains(&"batch") || *plain == ["row", "tx"],
            _ => true,
        };
        let kinds = ["rate.any", "rate.io", "share", "time", "bytes", "per_tx.any", "count.any"];
        kinds.iter().find_map(|kind| WORDS.rules.iter().find(|r| r.fits(kind, plain) && allowed(kind, r))).map(|r| r.id)
    }

    /// The column of a mark of a distribution of times.
    fn percentile(&self, plain: &[&str], mark: &str) -> Option<&'static str> {
        let family = match plain {
            [] if mark.starts_with('p') || self.unit.is_some() => "transaction_time_ns",
            ["latency"] | ["tx", "latency"] => "transaction_time_ns",
            ["commit"] | ["commit", "latency"] => "commit_time_ns",
            ["read"] | ["read", "latency"] => "read_time_us",
            _ => return None,
        };
        find_column(&format!("{family}_{mark}"))
    }
}
