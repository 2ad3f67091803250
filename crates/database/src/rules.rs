//! The doctor's rules, `[[rule]]` in the file of each database: what a setting, or a fact that Rust computes, does to the figures.
//!
//! A rule has cases; the first whose `when` holds counts, and one without `severity` says nothing. Texts take values as
//! `{name}`; `{value}` is that of the rule.

use std::collections::BTreeMap;

use loadline_model::{Finding, Severity};
use serde::Deserialize;

use crate::descriptor::fill_with;

pub(crate) trait SettingValues {
    fn text(&self, name: &str) -> Option<&str>;
    /// Value in the setting's own unit.
    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }
}

impl SettingValues for BTreeMap<String, String> {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

pub(crate) struct Known<'a> {
    pub(crate) settings: &'a dyn SettingValues,
    /// Facts that no setting says, by name; before a setting of the same name.
    pub(crate) facts: BTreeMap<&'static str, String>,
}

const UNKNOWN: &str = "–";

impl Known<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str).or_else(|| self.settings.text(name))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.facts.get(name).map_or_else(|| self.settings.number(name), |fact| fact.parse().ok())
    }

    /// `text` with values for `{name}`, of which `own` is that of `{value}`.
    fn filled(&self, text: &str, own: &str) -> String {
        fill_with(text, |name| Some(if name == "value" { own } else { self.text(name).unwrap_or(UNKNOWN) }))
    }
}

/// Findings with the same cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Each is a finding of its own.
    ids: Vec<String>,
    /// The setting or fact whose value counts; else that of the id's name.
    of: Option<String>,
    /// Subject of the finding; else its id.
    subject: Option<String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    when: When,
    severity: Option<Severity>,
    #[serde(default)]
    advice: String,
    #[serde(default = "own_value")]
    shows: String,
}

fn own_value() -> String {
    "{value}".to_owned()
}

/// Tests that must all hold.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "String")]
struct When(Vec<Test>);

#[derive(Debug)]
struct Test {
    /// The setting or fact; else that of the rule.
    of: Option<String>,
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    /// One of these, in capitals or not; `*` ends a beginning, `unset` is no value. Quotes are around an empty value and one
    /// with blanks.
    Is(Vec<String>),
    IsNot(Vec<String>),
    AtLeast(f64),
    Above(f64),
    Below(f64),
}

impl TryFrom<String> for When {
    type Error = String;

    fn try_from(text: String) -> Result<When, String> {
        let tests = text.split(" and ").map(Test::parse).collect::<Option<Vec<_>>>();
        let wrong = "write 'is off or 0', 'is not on', '> 0', '>= 0' or '< 100', before it the setting if it is another one, and 'and' \
                     between tests";
        tests.map(When).ok_or_else(|| format!("'{text}' is no condition: {wrong}"))
    }
}

impl Test {
    fn parse(text: &str) -> Option<Test> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let own = ["is", ">", ">=", "<"].contains(words.first()?);
        let (of, words) = if own { (None, &words[..]) } else { (words.first().copied(), words.get(1..)?) };
        let values = |words: &[&str]| {
            let unquoted = |value: &str| {
                let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
                inner.or(Some(value).filter(|v| !v.is_empty() && !v.contains(' '))).map(str::to_owned)
            };
            words.join(" ").split(" or ").map(unquoted).collect::<Option<Vec<String>>>()
        };
        let condition = match words {
            ["is", "not", rest @ ..] => Condition::IsNot(values(rest)?),
            ["is", rest @ ..] => Condition::Is(values(rest)?),
            [">=", number] => Condition::AtLeast(number.parse().ok()?),
            [">", number] => Condition::Above(number.parse().ok()?),
            ["<", number] => Condition::Below(number.parse().ok()?),
            _ => return None,
        };
        Some(Test { of: of.map(str::to_owned), condition })
    }

    fn holds(&self, known: &Known<'_>, own: &str) -> bool {
        let name = self.of.as_deref().unwrap_or(own);
        let is = |wanted: &String| match (known.text(name), wanted.as_str()) {
            (value, "unset") => value.is_none(),
            (Some(value), wanted) => match wanted.strip_suffix('*') {
                Some(begin) => value.get(..begin.len()).is_some_and(|v| v.eq_ignore_ascii_case(begin)),
                None => value.eq_ignore_ascii_case(wanted),
            },
            (None, _) => false,
        };
        match &self.condition {
            Condition::Is(values) => values.iter().any(is),
            Condition::IsNot(values) => !values.iter().any(is),
            Condition::AtLeast(least) => known.number(name).is_some_and(|n| n >= *least),
            Condition::Above(limit) => known.number(name).is_some_and(|n| n > *limit),
            Condition::Below(limit) => known.number(name).is_some_and(|n| n < *limit),
        }
    }
}

pub(crate) fn judge(rules: &[Rule], known: &Known<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (rule, id) in rules.iter().flat_map(|rule| rule.ids.iter().map(move |id| (rule, id))) {
        let of = rule.of.as_ref().unwrap_or(id);
        let value = known.text(of).unwrap_or(UNKNOWN);
        let case = rule.cases.iter().find(|case| case.when.0.iter().all(|test| test.holds(known, of)));
        let Some((case, severity)) = case.and_then(|case| Some((case, case.severity?))) else { continue };
        let subject = rule.subject.clone().unwrap_or_else(|| id.replace('-', " "));
        let [shown, advice] = [&case.shows, &case.advice].map(|text| known.filled(text, value));
        out.push(Finding::new(id, severity, subject, shown, advice));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[derive(Debug, Deserialize)]
    struct File {
        rule: Vec<Rule>,
    }

    fn settings(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn conditions_hold_or_not() {
        let settings =
            settings(&[("a", "OFF"), ("b", "O_DIRECT_NO_FSYNC"), ("n", "7"), ("empty", ""), ("words", "READ ONLY")]);
        let facts = BTreeMap::from([("n2", "100".to_owned()), ("a2", "x".to_owned())]);
        let known = Known { settings: &settings, facts };
        for (when, want) in cases::<(String, bool)>("conditions") {
            let tests = When::try_from(when.clone()).unwrap();
            assert_eq!(tests.0.iter().all(|test| test.holds(&known, "a")), want, "{when}");
        }
    }

    #[test]
    fn the_first_case_that_holds_is_said() {
        let text = r#"
            [[rule]]
            ids = ["a-b", "c"]
            of = "n"
            cases = [
                { when = "< 5" },
                { when = "< 50", severity = "warning", advice = "{value} of {m}, {none}" },
                { severity = "ok", shows = "many" },
            ]"#;
        let rules = toml::from_str::<File>(text).unwrap().rule;
        let said = |all: &[(&str, &str)]| judge(&rules, &Known { settings: &settings(all), facts: BTreeMap::new() });
        assert_eq!(said(&[("n", "4")]), []);
        let few = Finding::new("a-b", Severity::Warning, "a b", "9", "9 of 70, –");
        assert_eq!(said(&[("n", "9"), ("m", "70")])[0], few);
        assert_eq!(said(&[("n", "90")])[1], Finding::new("c", Severity::Ok, "c", "many", ""));
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_is_allowed() {
        for (case, said) in cases::<(String, String)>("mistakes-in-rules") {
            let text = format!("[[rule]]\nids = [\"a\"]\ncases = [\n{{ {case} }},\n]");
            let e = toml::from_str::<File>(&text).unwrap_err().to_string();
            assert!(e.contains("line 4") && e.contains(&said), "{e}");
        }
    }
}
