//! A header taken apart: the words of its subject, and its unit.

use super::unit::Unit;

#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    /// Words in lower case, without the unit.
    pub(crate) words: Vec<String>,
    /// Unit, in brackets or among the words.
    pub(crate) unit: Option<Unit>,
    /// Whether the unit stands in brackets.
    pub(crate) bracketed: bool,
    /// Whether there is a second unit of another kind, so that it is the header of two columns.
    pub(crate) second: bool,
}

/// Units that are recognised among words, where `min` is a minimum and `k` a letter.
fn among_words(word: &str) -> Option<Unit> {
    const NAMES: &str = "ns us µs μs usec ms msec s sec secs seconds pct % bytes kib mib gib kb mb gb";
    let rate = |u: &Unit| ["rate", "per_tx", "bandwidth", "size"].iter().any(|kind| u.kind.starts_with(kind));
    let named = |u: &Unit| rate(u) && word != "ops" || NAMES.split(' ').any(|n| n == word.to_lowercase());
    Unit::parse(word).filter(named)
}

impl Header {
    pub(crate) fn parse(text: &str) -> Header {
        let text = text.replace("<br>", " ").replace("<br/>", " ");
        let mut header = Header::default();
        let (mut plain, mut rest) = (String::new(), text.as_str());
        while let Some(open) = rest.find(['[', '(', '{']) {
            let close = rest[open..].find([']', ')', '}']).map_or(rest.len(), |at| open + at);
            let inside = rest[open + 1..close].trim();
            let (words, last) = inside.rsplit_once(", ").unwrap_or(("", inside));
            let remark = ["with", "incl", "excl"].iter().any(|start| inside.starts_with(start));
            let words = match Unit::parse(last) {
                Some(unit) => {
                    header.second |= header.unit.as_ref().is_some_and(|first| first.kind != unit.kind);
                    header.unit.get_or_insert(unit);
                    header.bracketed = true;
                    words
                }
                None if remark || !inside.contains(char::is_alphabetic) => "",
                None => inside,
            };
            plain += &format!("{} {words} ", &rest[..open]);
            rest = rest.get(close + 1..).unwrap_or("");
        }
        header.add_words(&(plain + rest));
        header
    }

    fn add_words(&mut self, plain: &str) {
        let plain = plain.replace(" per ", "/").replace("_per_", "/").replace("%ile", "th");
        let split = |c: char| c.is_whitespace() || matches!(c, '_' | ',' | ':' | ';' | '-' | '–' | '=' | '|');
        for token in plain.split(split).map(|t| t.trim_matches(['*', '`', '.', '†', '‡', '¹', '²', '³', '"'])) {
            let Some(unit) = among_words(token) else {
                self.add_token(token);
                continue;
            };
            // What is counted is a word, too: `rows/s`, `qps`.
            let counted = match (token.split_once('/'), unit.kind.split_once('.')) {
                (Some((what, _)), Some(_)) => what,
                (None, Some((_, piece @ ("tx" | "row" | "query" | "io")))) => piece,
                (None, Some((_, "logblock"))) => "redo",
                _ => "",
            };
            let words = [counted, if token.eq_ignore_ascii_case("tpmc") { token } else { "" }];
            self.words.extend(words.iter().filter(|w| !w.is_empty()).map(|w| w.to_lowercase()));
            self.unit.get_or_insert(unit);
        }
    }

    /// Words of a token: `AverageLatency`, `WAL/tx`, `%usr`, `#N`, `99thPercentile`.
    fn add_token(&mut self, token: &str) {
        if token.starts_with('#') && token.len() == 2 {
            return self.words.push(token.to_lowercase());
        }
        // `95% latency` is the 95th percentile.
        if let Some(rank) = token.strip_suffix('%').filter(|rank| rank.parse::<f64>().is_ok()) {
            return self.words.push(format!("{rank}th"));
        }
        if token.contains('%') && token.len() > 1 {
            self.unit.get_or_insert(Unit::of_id("pct"));
        }
        let (mut spaced, mut before) = (String::new(), ' ');
        let mut chars = token.chars().peekable();
        while let Some(c) = chars.next() {
            let part = c.is_alphanumeric() || c == '.' && before.is_ascii_digit() || c == 'Δ';
            // `LogFile` is two words, `MySQL` is one.
            if c.is_uppercase() && before.is_lowercase() && chars.peek().is_some_and(|next| next.is_lowercase()) {
                spaced.push(' ');
            }
            spaced.push(if part { c } else { ' ' });
            before = c;
        }
        self.words.extend(spaced.split_whitespace().map(str::to_lowercase));
    }
}
