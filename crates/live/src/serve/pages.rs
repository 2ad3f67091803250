//! The pages: what crate `report` makes, with a way back to the list.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use loadline_analyze::forecast::{Figure, of_run};
use loadline_model::manifest::RunState;
use loadline_report::{
    Compared, Forecasted, Format, Options, Questions, ReportError, RunData, Terms, Text, Trended, render, render_live,
    render_page, shown_name, validity,
};
use loadline_store::{StoredRun, clock_s};
use percent_encoding::percent_decode_str;

use super::Served;
use super::list::{Asked, body, matches};
use super::runs::RunError;
use super::shell::{address, linked, problem, shell};
use crate::now::{Follower, Now};

/// Most runs of one page.
const MOST_RUNS: usize = 50;
/// Most runs of a trend, the newest.
const MOST_FOLLOWED: usize = 1000;
/// Width of texts, characters.
const WIDTH: usize = 110;
/// Difference up to which two runs are called equivalent, as `loadline compare` has it.
const TERMS: Terms = Terms { margin: 0.02, across_drivers: false, unequal: false };
/// Seconds drawn of a run that goes on.
const SECONDS: usize = 120;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{0}")]
    Asked(String),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("the folder of the runs cannot be read: {0}")]
    Folder(#[from] std::io::Error),
    #[error("the page could not be made: this is a defect of loadline, please report it")]
    Defect,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let status = match &self {
            PageError::Run(RunError::Unknown(_)) => StatusCode::NOT_FOUND,
            PageError::Run(RunError::Odd(..) | RunError::Store(_)) => StatusCode::UNPROCESSABLE_ENTITY,
            PageError::Asked(_) | PageError::Report(_) => StatusCode::BAD_REQUEST,
            PageError::Folder(_) | PageError::Defect => StatusCode::INTERNAL_SERVER_ERROR,
        };
        problem(status, &self.to_string())
    }
}

/// Values of `name` in a query, decoded.
pub(super) fn values(query: Option<&str>, name: &str) -> Vec<String> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).collect()
}

/// The runs that a query names, each once.
fn chosen(query: Option<&str>) -> Result<Vec<String>, PageError> {
    let mut all: Vec<String> = Vec::new();
    for run in values(query, "run") {
        if !all.contains(&run) {
            all.push(run);
        }
    }
    if all.len() > MOST_RUNS {
        return Err(PageError::Asked(format!("{} runs are chosen: {MOST_RUNS} are the most", all.len())));
    }
    Ok(all)
}

/// Makes a page on another thread, a few at a time.
pub(super) async fn made<T: Send + 'static>(
    served: Arc<Served>,
    make: impl FnOnce(&Served) -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    let _permit = served.making.acquire().await.map_err(|_| PageError::Defect)?;
    let on = Arc::clone(&served);
    tokio::task::spawn_blocking(move || make(&on)).await.map_err(|_| PageError::Defect)?
}

pub(super) async fn list(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let first = |name| values(query.as_deref(), name).into_iter().next().unwrap_or_default();
        let asked = Asked { words: first("q").chars().take(200).collect(), page: first("page").parse().unwrap_or(1) };
        let all = served.runs.list()?;
        let found: Vec<_> = all.iter().filter(|run| matches(run, &asked.words)).collect();
        let body = body(&asked, &found, all.len(), |id| served.runs.seen(id));
        Ok(Html(shell("Runs", &body)))
    })
    .await
}

pub(super) async fn run(State(served): State<Arc<Served>>, Path(id): Path<String>) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let (_, mut data) = served.runs.read(&id)?;
        data.pages = data.tests_with_pages();
        let mut links = String::new();
        if data.manifest.state == RunState::Started {
            links.push_str("<a href=\"live\">As it goes on</a>");
        }
        if data.manifest.plan.arms.is_some() {
            links.push_str(&format!("<a href=\"/compare?run={}\">What the arms show</a>", address(&id)));
        } else {
            links.push_str(&format!("<a href=\"/forecast?run={}\">Forecast</a>", address(&id)));
        }
        for (name, what) in [("md", "Markdown"), ("csv", "CSV"), ("json", "JSON"), ("txt", "Text")] {
            links.push_str(&format!("<a href=\"report.{name}\">{what}</a>"));
        }
        let page = render(&[data], Format::Html, &Options::default())?;
        Ok(Html(linked(&page, &links)))
    })
    .await
}

/// The page of a test, or the report in another format.
pub(super) async fn part(
    State(served): State<Arc<Served>>,
    Path((id, page)): Path<(String, String)>,
) -> Result<Response, PageError> {
    if page == "index.html" {
        return Ok(Redirect::to(&format!("/runs/{}/", address(&id))).into_response());
    }
    let unknown = || PageError::Asked(format!("a run has no page '{page}'"));
    if let Some(test) = page.strip_prefix("test-").and_then(|p| p.strip_suffix(".html")) {
        let test: u32 = test.parse().map_err(|_| unknown())?;
        return made(served, move |served| {
            let period = served.runs.test(&id, test)?;
            let period = period.ok_or_else(|| PageError::Asked(format!("the run '{id}' has no test {test}")))?;
            let page = render_page(&[period], Format::Html)?;
            let link = format!("<a href=\"/runs/{}/\">Report of the run</a>", address(&id));
            Ok(Html(linked(&page, &link)).into_response())
        })
        .await;
    }
    let (format, kind) = match page.as_str() {
        "report.md" => (Format::Markdown, "text/plain; charset=utf-8"),
        "report.txt" => (Format::Text, "text/plain; charset=utf-8"),
        "report.csv" => (Format::Csv, "text/csv; charset=utf-8"),
        "report.json" => (Format::Json, "application/json"),
        _ => return Err(unknown()),
    };
    made(served, move |served| {
        let (_, data) = served.runs.read(&id)?;
        let text = render(&[data], format, &Options::default())?;
        Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
    })
    .await
}

pub(super) async fn side_by_side(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let runs = several(served, &chosen(query.as_deref())?)?;
        if runs.is_empty() {
            return Err(PageError::Asked("choose the runs that are to be set side by side".to_owned()));
        }
        let across = !values(query.as_deref(), "across-drivers").is_empty();
        let page = render(&runs, Format::Html, &Options { across_drivers: across, ..Options::default() })?;
        Ok(Html(linked(&page, "")))
    })
    .await
}

fn several(served: &Served, ids: &[String]) -> Result<Vec<RunData>, PageError> {
    ids.iter().map(|id| Ok(served.runs.read(id)?.1)).collect()
}

pub(super) async fn compare(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let mut runs = several(served, &chosen(query.as_deref())?)?;
        let of_arms = |run: &RunData| run.manifest.plan.arms.is_some();
        let asked = |text: &str| Err(PageError::Asked(text.to_owned()));
        let compared = match runs.as_slice() {
            [run] => match Compared::of_arms(run, WIDTH) {
                Some(compared) => compared,
                None => {
                    return asked("this is no run of two arms (`loadline ab`): choose a second run to compare it with");
                }
            },
            [a, b] if of_arms(a) || of_arms(b) => return asked("a run of two arms is compared by itself"),
            [_, _] => {
                // What was measured later is held against what was before, whatever the order of the list.
                runs.sort_by(|a, b| a.manifest.started_at.cmp(&b.manifest.started_at));
                let pair: Result<[RunData; 2], _> = runs.try_into();
                Compared::of_runs(&pair.map_err(|_| PageError::Defect)?, TERMS, WIDTH)
            }
            _ => return asked("choose one run of two arms, or two other runs"),
        };
        Ok(Html(linked(compared.html().as_bytes(), "")))
    })
    .await
}

pub(super) async fn trend(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let named = values(query.as_deref(), "run");
        let all = served.runs.list()?;
        let wanted = all.iter().filter(|run| named.is_empty() || named.contains(&run.id));
        let followed: Vec<_> = wanted.filter(|run| run.brief.as_ref().is_ok_and(|b| b.plan.arms.is_none())).collect();
        let followed_in_all = followed.len();
        let mut runs = Vec::new();
        for run in followed.into_iter().take(MOST_FOLLOWED) {
            // What cannot be read is marked in the list.
            if let Ok(stored) = served.runs.path(&run.id).and_then(|path| Ok(StoredRun::open(&path)?)) {
                runs.push(RunData::new(stored.manifest, stored.records, Vec::new()));
            }
        }
        runs.sort_by(|a, b| a.manifest.started_at.cmp(&b.manifest.started_at));
        let figures: Vec<String> =
            values(query.as_deref(), "figure").iter().flat_map(|f| f.split(',')).map(str::to_owned).collect();
        let left_out = followed_in_all.saturating_sub(MOST_FOLLOWED);
        let trended = Trended::of(&runs, (!figures.is_empty()).then_some(figures.as_slice()))?;
        if trended.counts() == [0, 0] {
            let text = "nothing can be followed: no valid test of a run without arms has such a figure";
            return Err(PageError::Asked(text.to_owned()));
        }
        let note = format!(
            "<p class=\"note\" role=\"status\">The newest {MOST_FOLLOWED} runs are followed; {left_out} older ones are left out. Choose \
             runs in the list to follow others.</p>\n"
        );
        let note = if left_out > 0 { note } else { String::new() };
        Ok(Html(under(&linked(trended.html(WIDTH).as_bytes(), ""), &note)))
    })
    .await
}

/// `page` with `more` (escaped) below its first links.
fn under(page: &str, more: &str) -> String {
    page.replacen("</nav>\n", &format!("</nav>\n{more}"), 1)
}

/// What a forecast of the run `id` is asked, and the form that asks.
fn questions(id: &str, query: Option<&str>) -> Result<(Questions, String), PageError> {
    let asked = |name: &str| values(query, name).pop().unwrap_or_default().trim().to_owned();
    let number = |name: &str| match asked(name) {
        text if text.is_empty() => Ok(None),
        text => match text.parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0) {
            Some(value) => Ok(Some(value)),
            None => Err(PageError::Asked(format!("{name}: '{text}' is no number above 0"))),
        },
    };
    let mut questions = Questions { tps: number("tps")?, ..Questions::default() };
    for (name, figure) in [("p99_ms", Figure::P99Ms), ("latency_ms", Figure::LatencyMs), ("cpu_pct", Figure::CpuPct)] {
        questions.limits.extend(number(name)?.map(|limit| (figure, limit)));
    }
    let field = |name: &str, what: &str| {
        format!(
            "<label>{what} <input name=\"{name}\" inputmode=\"decimal\" size=\"8\" value=\"{}\"></label> ",
            Text(&asked(name))
        )
    };
    let form = format!(
        "<form method=\"get\" action=\"/forecast\"><input type=\"hidden\" name=\"run\" value=\"{}\"><p>{}{}{}{}<button>Forecast\
         </button></p></form>\n",
        Text(id),
        field("p99_ms", "99th percentile at most, ms"),
        field("latency_ms", "Mean time at most, ms"),
        field("cpu_pct", "CPU busy at most, %"),
        field("tps", "Throughput wanted, tps"),
    );
    Ok((questions, form))
}

pub(super) async fn forecast(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let ids = chosen(query.as_deref())?;
        let [id] = ids.as_slice() else {
            return Err(PageError::Asked("choose the one run whose sweeps are to be forecast".to_owned()));
        };
        let stored = StoredRun::open(&served.runs.path(id)?).map_err(RunError::Store)?;
        if stored.manifest.plan.arms.is_some() {
            return Err(PageError::Asked("this is a run of two arms: a forecast is made from a sweep".to_owned()));
        }
        let (series, remarks) =
            of_run(&stored.manifest, &stored.records).map_err(|e| PageError::Asked(e.to_string()))?;
        if series.is_empty() {
            let why = if remarks.is_empty() { String::new() } else { format!(": {}", remarks.join("; ")) };
            return Err(PageError::Asked(format!("there is no sweep with 2 job counts or more in it{why}")));
        }
        let remarks = stored.warnings.iter().cloned().chain(remarks).collect();
        let (questions, form) = questions(id, query.as_deref())?;
        let forecasted = Forecasted::of(id, &series, remarks, questions, |_| true);
        let link = format!("<a href=\"/runs/{}/\">Report of the run</a>", address(id));
        Ok(Html(under(&linked(forecasted.render(Format::Html)?.as_bytes(), &link), &form)))
    })
    .await
}

/// What changes of a run that goes on: its part of the page, a sentence for those who cannot see it, and whether it is over.
pub(super) fn changing(now: &Now) -> (String, String, bool) {
    let shown = now.shown(clock_s(), SECONDS);
    (render_live(&shown), validity(&now.records), !now.is_open() || now.problem.is_some())
}

pub(super) async fn live(State(served): State<Arc<Served>>, Path(id): Path<String>) -> Result<Html<String>, PageError> {
    made(served, move |served| {
        let path = served.runs.path(&id)?;
        let mut follower = Follower::new(&path);
        let now = follower.look();
        let (html, said, _) = changing(now);
        let of = now.manifest.as_ref().map_or_else(String::new, |m| {
            let database = format!("{} {}", m.target.product, m.target.version).trim().to_owned();
            let platform = if m.plan.platform == database { String::new() } else { format!("{}, ", m.plan.platform) };
            format!("{}, started {}", shown_name(&format!("{platform}{database}")), m.started_at)
        });
        let link = address(&id);
        let body = format!(
            "<p class=\"sub\">{}</p>\n<p><a href=\"/runs/{link}/\">Report of the tests that are done</a></p>\n<p id=\"said\" class=\"away\" \
             role=\"status\">{}</p>\n<p id=\"lost\" role=\"alert\" hidden></p>\n<section id=\"live\" aria-label=\"The run as it stands\" data-events=\"/runs/{link}/events\">\n{html}\n\
             </section>\n",
            Text(&of),
            Text(&said)
        );
        Ok(Html(shell(&id, &body)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_each_run_counts_once() {
        let query = Some("run=a%2Fb&run=c+d&q=x&run=a%2Fb&run=%ff");
        assert_eq!(chosen(query).unwrap(), ["a/b", "c d", "\u{fffd}"]);
        assert!(chosen(None).unwrap().is_empty());
        let many: String = (0..=MOST_RUNS).map(|n| format!("run={n}&")).collect();
        assert!(chosen(Some(&many)).is_err());
    }
}
