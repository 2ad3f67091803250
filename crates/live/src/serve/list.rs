//! The page with all runs: search, labels, and what to do with those that are chosen.

use std::collections::BTreeSet;

use loadline_model::format::duration_s;
use loadline_model::group::{distinct, grouped};
use loadline_model::manifest::RunState;
use loadline_model::variant::Paired;
use loadline_report::{HEADLINES, shown_name};
use loadline_store::parse_rfc3339;
use serde::Serialize;
use serde_json::{Value, json};

use super::http::values;
use super::runs::{Brief, Listed, Seen};
use super::shell::{address, front};

pub(super) const PER_PAGE: usize = 100;
const MOST_LABELS: usize = 3;
const MOST_FIGURES: usize = 3;

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Asked {
    /// Words, each of which a run must have.
    pub(super) words: String,
    /// The platform, or empty for all.
    pub(super) platform: String,
    /// A workload that a run must have, or empty.
    pub(super) workload: String,
    /// Chosen headlines, `CODE: p99`.
    pub(super) figures: Vec<String>,
    /// The run that another one is to be compared with.
    pub(super) base: String,
    pub(super) page: usize,
}

impl Asked {
    pub(super) fn new(query: &str) -> Asked {
        let first = |name| values(query, name).into_iter().next().unwrap_or_default();
        let figures = values(query, "figure").into_iter().filter(|figure| !figure.is_empty()).take(MOST_FIGURES);
        Asked {
            words: first("q").chars().take(200).collect(),
            platform: first("platform"),
            workload: first("workload"),
            figures: figures.collect(),
            base: first("base"),
            page: first("page").parse().unwrap_or(1),
        }
    }

    /// The query of the list without page and base.
    fn query(&self) -> String {
        let fixed = [("q", &self.words), ("platform", &self.platform), ("workload", &self.workload)];
        let all = fixed.into_iter().chain(self.figures.iter().map(|figure| ("figure", figure)));
        all.map(|(name, value)| format!("{name}={}", address(value))).collect::<Vec<_>>().join("&")
    }

    fn is_of_workload(&self, code: &str) -> bool {
        self.workload.is_empty() || shown_name(code) == self.workload
    }

    /// Whether it asks for `listed`, by platform, workload, and every word in its name, labels, start or state.
    pub(super) fn matches(&self, listed: &Listed) -> bool {
        let text = match &listed.brief {
            Ok(brief) => {
                let of_platform = self.platform.is_empty() || shown_name(&brief.plan.platform) == self.platform;
                if !of_platform || !self.workload.is_empty() && !codes(brief).any(|code| self.is_of_workload(code)) {
                    return false;
                }
                format!("{} {} {} {}", listed.id, brief.started_at, state(brief.state), labels(brief).join(" "))
            }
            Err(_) if !(self.platform.is_empty() && self.workload.is_empty()) => return false,
            Err(why) => format!("{} {why}", listed.id),
        };
        let text = text.to_lowercase();
        self.words.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    /// The chosen headlines; else the peaks of the workloads that most of the `shown` runs have, in the order of their reports.
    fn headlines(&self, shown: &[(&Listed, Seen)]) -> Vec<String> {
        if !self.figures.is_empty() {
            return self.figures.clone();
        }
        let codes = shown.iter().filter_map(|(_, seen)| seen.tests.as_ref()).flat_map(|tests| &tests.headlines);
        let codes = codes.map(|(code, _)| code.as_str()).filter(|code| self.is_of_workload(code));
        let mut counts = grouped(codes, |code| *code);
        counts.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
        let peaks = counts.iter().map(|(code, _)| headline_name(code, HEADLINES[0]));
        let more = HEADLINES[2..].iter().filter_map(|what| Some(headline_name(counts.first()?.0, what)));
        peaks.chain(more).take(MOST_FIGURES).collect()
    }
}

fn codes(brief: &Brief) -> impl Iterator<Item = &str> {
    brief.plan.workloads.iter().map(|w| w.code.as_str())
}

/// `LGWR-LAT1: p99`.
fn headline_name(code: &str, what: &str) -> String {
    format!("{}: {what}", shown_name(code))
}

pub(super) fn state(state: RunState) -> &'static str {
    match state {
        RunState::Started => "running",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
        RunState::Complete => "complete",
    }
}

/// Words by which a run is found: platform, product, workloads, kind; each once.
fn labels(Brief { plan, target, .. }: &Brief) -> Vec<String> {
    let product = format!("{} {}", target.product, target.version);
    let kind = |paired: &Paired| if paired.links.is_some() { "levels of replication" } else { "two arms" }.to_owned();
    let kinds = plan.paired.iter().map(kind);
    let workloads = plan.workloads.iter().map(|w| shown_name(&w.code));
    let all = [shown_name(&plan.platform), shown_name(product.trim())].into_iter().chain(kinds).chain(workloads);
    distinct(all.filter(|label| !label.is_empty()))
}

/// Contents of the page: `all` runs, of which `found` are those that were asked for.
pub(super) fn page<'a>(
    asked: &Asked,
    found: &'a [impl AsRef<Listed>],
    all: &[impl AsRef<Listed>],
    seen: impl Fn(&'a str) -> Seen,
) -> String {
    let pages = found.len().div_ceil(PER_PAGE).max(1);
    let page = asked.page.clamp(1, pages);
    let shown = found.iter().skip((page - 1) * PER_PAGE).take(PER_PAGE).map(AsRef::as_ref);
    let shown: Vec<(&Listed, Seen)> = shown.map(|listed| (listed, seen(&listed.id))).collect();
    let figures = asked.headlines(&shown);
    let rows: Vec<Value> = shown.iter().map(|(listed, seen)| row(listed, seen, &figures)).collect();
    let near: Vec<usize> = (1..=pages).filter(|n| *n == 1 || *n == pages || n.abs_diff(page) <= 3).collect();
    let briefs = || all.iter().filter_map(|listed| listed.as_ref().brief.as_ref().ok());
    let platforms: BTreeSet<&str> = briefs().map(|brief| brief.plan.platform.as_str()).collect();
    let known: BTreeSet<&str> = briefs().flat_map(codes).collect();
    let choices: Vec<String> =
        known.iter().flat_map(|code| HEADLINES.map(|figure| headline_name(code, figure))).collect();
    let context = json!({
        "asked": asked,
        "query": asked.query(),
        "base": address(&asked.base),
        "found": found.len(),
        "all": all.len(),
        "platforms": platforms.into_iter().map(shown_name).collect::<Vec<_>>(),
        "workloads": known.into_iter().map(shown_name).collect::<Vec<_>>(),
        "heads": figures.iter().map(|of| of.rsplit_once(": ").unwrap_or((of.as_str(), ""))).collect::<Vec<_>>(),
        "figures": figures,
        "choices": choices,
        "runs": rows,
        "pages": pages,
        "page": page,
        "near": near,
    });
    front(include_str!("list.html"), context)
}

fn row(listed: &Listed, Seen { tests, written }: &Seen, figures: &[String]) -> Value {
    let (id, link) = (&listed.id, address(&listed.id));
    let brief = match &listed.brief {
        Ok(brief) => brief,
        Err(why) => return json!({ "id": id, "link": link, "why": why }),
    };
    let headline = |figure: &String| {
        let (code, what) = figure.rsplit_once(": ")?;
        let at = HEADLINES.iter().position(|name| *name == what)?;
        tests.as_ref()?.headlines.iter().find(|(name, _)| shown_name(name) == code)?.1[at].clone()
    };
    let ended = tests.as_ref().and_then(|tests| tests.ended);
    let length = ended.zip(parse_rfc3339(&brief.started_at)).and_then(|(end, start)| end.duration_since(start).ok());
    let platform = shown_name(&brief.plan.platform);
    let mut labels: Vec<_> = labels(brief).into_iter().filter(|label| *label != platform).collect();
    let more = labels.len().saturating_sub(MOST_LABELS);
    labels.truncate(MOST_LABELS);
    let of_arms = brief.plan.paired.as_ref().is_some_and(|paired| paired.links.is_none());
    json!({
        "id": id,
        "link": link,
        "started": brief.started_at,
        "platform": platform,
        "state": state(brief.state),
        "written": written,
        "goes_on": brief.state == RunState::Started,
        "figures": figures.iter().map(headline).collect::<Vec<_>>(),
        "counts": tests.as_ref().map_or([0; 4], |tests| tests.counts),
        "length": length.map(|length| duration_s(length.as_secs_f64())),
        "labels": labels.into_iter().map(|label| [address(&label), label]).collect::<Vec<_>>(),
        "more": more,
        "of_arms": of_arms,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::runs::Tests;
    use super::*;

    fn listed(id: &str, text: &str) -> Arc<Listed> {
        Arc::new(Listed { id: id.to_owned(), brief: serde_json::from_str(text).map_err(|e| e.to_string()) })
    }

    const RUN: &str = r#"{"started_at":"2026-11-20T16:15:30Z","state":"complete","plan":{"platform":"<b>Lab\" 7</b>","workloads":
        [{"code":"LGWR-LAT1","driver":"client"},{"code":"LGWR-LAT1"}],"jobs":"auto"},"target":{"product":"PostgreSQL","version":"17"}}"#;

    #[test]
    fn a_run_is_found_by_all_words_together() {
        let run = listed("2026-x", RUN);
        let finds = |run: &Listed, query: &str| Asked::new(query).matches(run);
        let found = ["", "q=lab", "q=LGWR+postgres", "q=complete+2026-11-20", "q=17+7</b>", "workload=LGWR-LAT1&q=lab"];
        let not = ["q=lab+mariadb", "workload=LGWR-LAT", "platform=Lab"];
        for query in found.into_iter().chain(not) {
            assert_eq!(finds(&run, query), found.contains(&query), "{query}");
        }
        assert!(finds(&listed("y", "{}"), "q=y") && !finds(&listed("y", "{}"), "q=z"));
    }

    #[test]
    fn names_and_labels_are_escaped() {
        let runs = [listed("\"><script>alert(1)</script>", RUN), listed("<i>", "<u>")];
        let asked = Asked::new("q=\"><script>&base=<i>&figure=<u>");
        let html = page(&asked, &runs, &runs, |_| Seen::default());
        for tag in ["<script>", "<b>", "<i>", "<u>"] {
            assert!(!html.contains(tag), "{tag}: {html}");
        }
        assert!(html.contains("/runs/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E/"), "{html}");
        assert_eq!(html.matches(">LGWR-LAT1</a>").count(), 1, "each label once");
    }

    #[test]
    fn a_page_that_does_not_exist_is_the_nearest_one() {
        let runs: Vec<_> = (0..250).map(|n| listed(&format!("run-{n}"), RUN)).collect();
        for (page, rows) in [(0, 100), (1, 100), (3, 50), (999, 50)] {
            let html = super::page(&Asked { page, ..Asked::default() }, &runs, &runs, |_| Seen::default());
            assert_eq!(html.matches("<tr><td>").count(), rows, "page {page}");
        }
    }

    #[test]
    fn a_run_shows_the_figures_that_were_chosen() {
        let (runs, seen) = ([listed("a", RUN)], |_: &str| {
            let peak = ["9 tps", "1 ms", "2 ms"].map(|text| Some(text.to_owned()));
            let [peak, mean, p99] = peak;
            let headlines = [("LGWR-LAT1".to_owned(), [peak, mean, p99, None, None])].into();
            let tests = Tests { counts: [2, 1, 1, 0], headlines, ended: parse_rfc3339("2026-11-20T16:17:35Z") };
            Seen { tests: Some(Arc::new(tests)), written: None }
        });
        let html = page(&Asked::default(), &runs, &runs, seen);
        for part in
            [">9 tps<", ">2 ms<", "2 of 4", "2 min 05 s", "base=a\">compare<", "kind3\" x=\"45.0\" width=\"15.0\""]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        let html = page(&Asked::new("figure=LGWR-LAT1:+mean+time&base=b"), &runs, &runs, seen);
        assert!(html.contains(">1 ms<") && !html.contains(">9 tps<"), "{html}");
        assert!(html.contains("compare?run=b&amp;run=a\""), "{html}");
        let started = [listed("a", &RUN.replace("complete", "started"))];
        for (written, said) in [(Some(false), "not running here"), (Some(true), "running"), (None, "running")] {
            let html = page(&Asked::default(), &started, &started, |_| Seen { written, ..Seen::default() });
            assert!(html.contains(&format!("/live\">{said}</a>")), "{said}: {html}");
        }
    }
}
