//! The page with all runs: search, labels, and what to do with those that are chosen.

use loadline_model::manifest::RunState;
use loadline_model::variant::Paired;
use loadline_report::shown_name;
use serde_json::{Value, json};

use super::runs::{Brief, Listed, Seen};
use super::shell::{address, shell};

/// Runs on a page.
pub(super) const PER_PAGE: usize = 100;
/// Labels shown of a run.
const MOST_LABELS: usize = 8;

/// What is asked of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Words, each of which a run must have.
    pub(super) words: String,
    /// Page, from 1.
    pub(super) page: usize,
}

/// State of a run in a word.
pub(super) fn state(state: RunState) -> &'static str {
    match state {
        RunState::Started => "running",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
        RunState::Complete => "complete",
    }
}

/// What a run can be found by: platform, product, workloads, kind; each once.
fn labels(Brief { plan, target, .. }: &Brief) -> Vec<String> {
    let product = format!("{} {}", target.product, target.version);
    let kind = |paired: &Paired| if paired.links.is_some() { "levels of replication" } else { "two arms" }.to_owned();
    let kinds = plan.paired.iter().map(kind);
    let workloads = plan.workloads.iter().map(|w| shown_name(&w.code));
    let mut all = Vec::new();
    for label in [shown_name(&plan.platform), shown_name(product.trim())].into_iter().chain(kinds).chain(workloads) {
        if !label.is_empty() && !all.contains(&label) {
            all.push(label);
        }
    }
    all
}

/// Whether a run has every word of `words`, in its name, labels, start or state.
pub(super) fn matches(listed: &Listed, words: &str) -> bool {
    let text = match &listed.brief {
        Ok(brief) => format!("{} {} {} {}", listed.id, brief.started_at, state(brief.state), labels(brief).join(" ")),
        Err(why) => format!("{} {why}", listed.id),
    };
    let text = text.to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// What the page shows: `found` are the runs that were asked for.
pub(super) fn page<'a>(
    asked: &Asked,
    found: &'a [impl AsRef<Listed>],
    all: usize,
    seen: impl Fn(&'a str) -> Seen,
) -> String {
    let pages = found.len().div_ceil(PER_PAGE).max(1);
    let page = asked.page.clamp(1, pages);
    let runs = found.iter().skip((page - 1) * PER_PAGE).take(PER_PAGE).map(|listed| row(listed.as_ref(), &seen));
    let near = (1..=pages).filter(|n| *n == 1 || *n == pages || n.abs_diff(page) <= 3);
    let context = json!({
        "words": asked.words,
        "link": address(&asked.words),
        "found": found.len(),
        "all": all,
        "runs": runs.collect::<Vec<_>>(),
        "pages": pages,
        "page": page,
        "near": near.collect::<Vec<_>>(),
    });
    shell("Runs", include_str!("list.html"), context)
}

fn row<'a>(listed: &'a Listed, seen: &impl Fn(&'a str) -> Seen) -> Value {
    let (id, link) = (&listed.id, address(&listed.id));
    let brief = match &listed.brief {
        Ok(brief) => brief,
        Err(why) => return json!({ "id": id, "link": link, "why": why }),
    };
    let Seen { counts, written } = seen(id);
    let tests = counts.map_or("–".to_owned(), |(all, valid)| match valid {
        Some(valid) => format!("{valid} of {all}"),
        None => format!("{all}, not checked"),
    });
    let word = match (brief.state, written) {
        (RunState::Started, Some(false)) => "not running here",
        (known, _) => state(known),
    };
    let labels = labels(brief);
    let more = labels.len().saturating_sub(MOST_LABELS);
    let labels: Vec<_> = labels.into_iter().take(MOST_LABELS).map(|label| [address(&label), label]).collect();
    let goes_on = brief.state == RunState::Started;
    json!({ "id": id, "link": link, "state": word, "goes_on": goes_on, "tests": tests, "labels": labels, "more": more })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: &str, text: &str) -> std::sync::Arc<Listed> {
        std::sync::Arc::new(Listed { id: id.to_owned(), brief: serde_json::from_str(text).map_err(|e| e.to_string()) })
    }

    const RUN: &str = r#"{"started_at":"2026-11-20T16:15:30Z","state":"complete","plan":{"platform":"<b>Lab\" 7</b>","workloads":
        [{"code":"LGWR-LAT1","driver":"client"},{"code":"LGWR-LAT1"}],"jobs":"auto"},"target":{"product":"PostgreSQL","version":"17"}}"#;

    #[test]
    fn a_run_is_found_by_all_words_together() {
        let run = listed("2026-x", RUN);
        for words in ["", "lab", "LGWR postgres", "complete 2026-11-20", "17 7</b>"] {
            assert!(matches(&run, words), "{words}");
        }
        assert!(!matches(&run, "lab mariadb"));
        assert!(matches(&listed("y", "{}"), "y") && !matches(&listed("y", "{}"), "z"));
    }

    #[test]
    fn names_and_labels_are_escaped() {
        let runs = [listed("\"><script>alert(1)</script>", RUN), listed("<i>", "<u>")];
        let asked = Asked { words: "\"><script>".to_owned(), page: 1 };
        let html = page(&asked, &runs, 2, |_| Seen { counts: Some((3, Some(2))), written: None });
        for tag in ["<script>", "<b>", "<i>", "<u>"] {
            assert!(!html.contains(tag), "{tag}: {html}");
        }
        assert!(html.contains("/runs/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E/"), "{html}");
        assert_eq!(html.matches(">LGWR-LAT1<").count(), 1, "each label once");
    }

    #[test]
    fn a_page_that_does_not_exist_is_the_nearest_one() {
        let runs: Vec<_> = (0..250).map(|n| listed(&format!("run-{n}"), RUN)).collect();
        for (page, rows) in [(0, 100), (1, 100), (3, 50), (999, 50)] {
            let html = super::page(&Asked { words: String::new(), page }, &runs, 250, |_| Seen::default());
            assert_eq!(html.matches("<tr><td>").count(), rows, "page {page}");
        }
    }
}
