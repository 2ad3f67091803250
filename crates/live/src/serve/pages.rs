//! The pages: what crate `report` makes, with a way back to the list.

use loadline_analyze::forecast::{Figure, Question, fit, series};
use loadline_model::group::distinct;
use loadline_model::manifest::RunState;
use loadline_report::{
    Compared, Forecasts, Format, Options, ReportError, RunData, Terms, Trended, filled, render, render_live,
    render_page, shown_name, validity,
};
use loadline_store::{StoredRun, clock_s, is_written};
use serde_json::json;

use super::Served;
use super::http::{Answer, values};
use super::list::{Asked, page};
use super::runs::{RunError, period};
use super::shell::{address, front, linked, problem, shell};
use crate::metrics::Metrics;
use crate::now::Now;

const MOST_RUNS: usize = 50;
/// Most runs of a trend, the newest.
const MOST_FOLLOWED: usize = 1000;
/// Most runs whose metrics are shown.
const MOST_MEASURED: usize = 20;
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Difference up to which two runs are called equivalent, as `loadline compare` has it.
const TERMS: Terms = Terms { margin: 0.02, across_drivers: false, unequal: false };

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
    #[error("the page could not be made: an internal error, please report it")]
    Defect,
}

impl PageError {
    pub(super) fn answer(self) -> Answer {
        let status = match &self {
            PageError::Run(RunError::Unknown(_)) => 404,
            PageError::Run(RunError::Odd(..) | RunError::Store(_)) => 422,
            PageError::Asked(_) | PageError::Report(_) => 400,
            PageError::Folder(_) | PageError::Defect => 500,
        };
        problem(status, &self.to_string())
    }
}

fn chosen(query: &str) -> Result<Vec<String>, PageError> {
    let all = distinct(values(query, "run"));
    if all.len() > MOST_RUNS {
        return Err(PageError::Asked(format!("{} runs are chosen: {MOST_RUNS} are the most", all.len())));
    }
    Ok(all)
}

pub(super) fn list(served: &Served, query: &str) -> Result<String, PageError> {
    let (asked, all) = (Asked::new(query), served.runs.list()?);
    if all.is_empty() {
        let context = json!({ "dir": served.runs.dir.display().to_string() });
        return Ok(front(include_str!("start.html"), context));
    }
    let found: Vec<_> = all.iter().filter(|run| asked.matches(run)).cloned().collect();
    Ok(page(&asked, &found, &all, |id| served.runs.seen(id)))
}

pub(super) fn example() -> Result<String, PageError> {
    // Its runs were measured by different drivers.
    let options = Options { across_drivers: true, ..Options::default() };
    Ok(linked(&render(&loadline_report::example()?, Format::Html, &options)?, &[]))
}

pub(super) fn run(served: &Served, id: &str) -> Result<String, PageError> {
    let (_, mut data) = served.runs.read(id)?;
    data.pages = data.tests_with_pages();
    let plan = &data.manifest.plan;
    let mut links = Vec::new();
    if data.manifest.state == RunState::Started {
        links.push(("live".to_owned(), "As it goes on"));
    }
    links.push(match plan.arms() {
        Some(_) => (format!("/compare?run={}", address(id)), "What the arms show"),
        None => (format!("/forecast?run={}", address(id)), "Forecast"),
    });
    let formats = [("md", "Markdown"), ("csv", "CSV"), ("json", "JSON"), ("txt", "Text")];
    links.extend(formats.map(|(name, what)| (format!("report.{name}"), what)));
    let page = render(&[data], Format::Html, &Options::default())?;
    Ok(linked(&page, &links))
}

fn report_of(id: &str) -> (String, &'static str) {
    (format!("/runs/{}/", address(id)), "Report of the run")
}

/// The page of a test, or the report in another format.
pub(super) fn part(served: &Served, id: &str, page: &str) -> Result<Answer, PageError> {
    if page == "index.html" {
        return Ok(Answer::see(format!("/runs/{}/", address(id))));
    }
    let unknown = || PageError::Asked(format!("a run has no page '{page}'"));
    if let Some(test) = page.strip_prefix("test-").and_then(|p| p.strip_suffix(".html")) {
        let test: u32 = test.parse().map_err(|_| unknown())?;
        let (stored, data) = served.runs.read(id)?;
        let period = period(&stored, &data, test).map_err(RunError::Store)?;
        let period = period.ok_or_else(|| PageError::Asked(format!("the run '{id}' has no test {test}")))?;
        let page = render_page(&[period], Format::Html)?;
        return Ok(Answer::html(200, linked(&page, &[report_of(id)])));
    }
    let (format, kind) = match page {
        "report.md" => (Format::Markdown, "text/plain; charset=utf-8"),
        "report.txt" => (Format::Text, "text/plain; charset=utf-8"),
        "report.csv" => (Format::Csv, "text/csv; charset=utf-8"),
        "report.json" => (Format::Json, "application/json"),
        _ => return Err(unknown()),
    };
    let (_, data) = served.runs.read(id)?;
    Ok(Answer::new(kind, render(&[data], format, &Options::default())?))
}

pub(super) fn side_by_side(served: &Served, query: &str) -> Result<String, PageError> {
    let runs = several(served, &chosen(query)?)?;
    if runs.is_empty() {
        return Err(PageError::Asked("choose the runs that are to be set side by side".to_owned()));
    }
    let across = !values(query, "across-drivers").is_empty();
    let page = render(&runs, Format::Html, &Options { across_drivers: across, ..Options::default() })?;
    Ok(linked(&page, &[]))
}

fn several(served: &Served, ids: &[String]) -> Result<Vec<RunData>, PageError> {
    ids.iter().map(|id| Ok(served.runs.read(id)?.1)).collect()
}

pub(super) fn compare(served: &Served, query: &str) -> Result<String, PageError> {
    let mut runs = several(served, &chosen(query)?)?;
    // What was measured later is compared with what was before, whatever the order of the list.
    runs.sort_by(|a, b| a.manifest.started_at.cmp(&b.manifest.started_at));
    let compared = Compared::new(&runs, TERMS).map_err(|e| PageError::Asked(e.to_string()))?;
    Ok(linked(compared.html().as_bytes(), &[]))
}

pub(super) fn trend(served: &Served, query: &str) -> Result<String, PageError> {
    let named = values(query, "run");
    let all = served.runs.list()?;
    let wanted = all.iter().filter(|run| named.is_empty() || named.contains(&run.id));
    let followed: Vec<_> = wanted.filter(|run| run.brief.as_ref().is_ok_and(|b| b.plan.paired.is_none())).collect();
    let followed_in_all = followed.len();
    let mut runs = Vec::new();
    for run in followed.into_iter().take(MOST_FOLLOWED) {
        // What cannot be read is marked in the list.
        if let Ok(stored) = served.runs.path(&run.id).and_then(|path| Ok(StoredRun::open(&path)?)) {
            runs.push(RunData::new(stored.manifest, stored.records, Vec::new()));
        }
    }
    runs.sort_by(|a, b| a.manifest.started_at.cmp(&b.manifest.started_at));
    let figures: Vec<String> = values(query, "figure").iter().flat_map(|f| f.split(',')).map(str::to_owned).collect();
    let left_out = followed_in_all.saturating_sub(MOST_FOLLOWED);
    let trended = Trended::new(&runs, (!figures.is_empty()).then_some(figures.as_slice()))?;
    if trended.counts()[0] == 0 {
        let text = "nothing can be followed: no valid test of a run without arms has such a figure";
        return Err(PageError::Asked(text.to_owned()));
    }
    let page = linked(trended.render(Format::Html)?.as_bytes(), &[]);
    if left_out == 0 {
        return Ok(page);
    }
    let note = format!(
        "<p class=\"note\" role=\"status\">The newest {MOST_FOLLOWED} runs are followed; {left_out} older ones are left out. Choose \
         runs in the list to follow others.</p>\n"
    );
    Ok(under(&page, &note))
}

/// `page` with `more` (escaped) below its first links.
fn under(page: &str, more: &str) -> String {
    page.replacen("</nav>\n", &format!("</nav>\n{more}"), 1)
}

/// Questions to a forecast of the run `id`, and the form that asks.
fn questions(id: &str, query: &str) -> Result<(Vec<Question>, String), PageError> {
    let asked = |name: &str| values(query, name).pop().unwrap_or_default().trim().to_owned();
    let number = |name: &str| match asked(name) {
        text if text.is_empty() => Ok(None),
        text => match text.parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0) {
            Some(value) => Ok(Some(value)),
            None => Err(PageError::Asked(format!("{name}: '{text}' is no number above 0"))),
        },
    };
    let fields = [
        ("p99_ms", "99th percentile at most, ms", Figure::P99Ms),
        ("latency_ms", "Mean time at most, ms", Figure::LatencyMs),
        ("cpu_pct", "CPU busy at most, %", Figure::CpuPct),
        ("tps", "Throughput wanted, tps", Figure::Tps),
    ];
    let mut questions = Vec::new();
    for (name, _, figure) in fields {
        questions.extend(number(name)?.map(|limit| Question { figure, limit }));
    }
    // Answers to throughput come first.
    questions.sort_by_key(|question| question.figure != Figure::Tps);
    let fields = fields.map(|(name, what, _)| (name, what, asked(name)));
    Ok((questions, filled(include_str!("forecast.html"), json!({ "id": id, "fields": fields }))))
}

pub(super) fn forecast(served: &Served, query: &str) -> Result<String, PageError> {
    let ids = chosen(query)?;
    let [id] = ids.as_slice() else {
        return Err(PageError::Asked("choose the one run whose sweeps are to be forecast".to_owned()));
    };
    let stored = StoredRun::open(&served.runs.path(id)?).map_err(RunError::Store)?;
    if stored.manifest.plan.arms().is_some() {
        return Err(PageError::Asked("this is a run of two arms: a forecast is made from a sweep".to_owned()));
    }
    let (series, remarks) = series(stored.manifest.state, &stored.records, &stored.records);
    if series.is_empty() {
        let why = if remarks.is_empty() { String::new() } else { format!(": {}", remarks.join("; ")) };
        return Err(PageError::Asked(format!("there is no sweep with 2 job counts or more in it{why}")));
    }
    let remarks = stored.warnings.iter().cloned().chain(remarks).collect();
    let (questions, form) = questions(id, query)?;
    let forecasts = Forecasts { title: id.clone(), remarks, fitted: fit(&series), jobs: Vec::new(), questions };
    Ok(under(&linked(forecasts.render(Format::Html)?.as_bytes(), &[report_of(id)]), &form))
}

/// A run as it stands. While it goes on, the page asks for itself again and takes over what lies in `said` and `live`.
pub(super) fn live(served: &Served, id: &str) -> Result<String, PageError> {
    let context = |now: &Now| {
        json!({
            "link": address(id),
            "platform": now.platform().map(|platform| shown_name(&platform)),
            "started": now.manifest.as_ref().map(|manifest| &manifest.started_at),
            "validity": validity(&now.records),
            "goes_on": now.is_open(),
            "live": render_live(&now.shown(clock_s())),
        })
    };
    Ok(shell(id, include_str!("live.html"), served.look(id, context)?))
}

/// Runs that go on and the newest one, for Prometheus. What is said of each: [`crate::metrics`].
pub(super) fn metrics(served: &Served) -> Result<Answer, PageError> {
    let listed = served.runs.list()?;
    let going = listed.iter().enumerate().filter(|(at, run)| {
        *at == 0
            || run.brief.as_ref().is_ok_and(|b| b.state == RunState::Started)
                && served.runs.path(&run.id).is_ok_and(|path| is_written(&path) == Some(true))
    });
    let mut metrics = Metrics::default();
    let now_s = clock_s();
    for (_, run) in going.take(MOST_MEASURED) {
        // One that cannot be read does not hide the others.
        let _ = served.look(&run.id, |now| metrics.add(&run.id, now, now_s));
    }
    Ok(Answer::new(OPEN_METRICS, metrics.text().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_each_run_counts_once() {
        let query = "run=a%2Fb&run=c+d&q=x&run=a%2Fb&run=%ff";
        assert_eq!(chosen(query).unwrap(), ["a/b", "c d", "\u{fffd}"]);
        assert!(chosen("").unwrap().is_empty());
        let many: String = (0..=MOST_RUNS).map(|n| format!("run={n}&")).collect();
        assert!(chosen(&many).is_err());
    }
}
