//! What a simulation says: the calibration with its error first, then each what-if beside the platform as it was measured.

use loadline_model::format::{ABSENT, number, whole};
use loadline_simulate::{Answer, Bound, Fitted, GOOD_PCT, Line, Outcome};

use crate::csv::{self, Named};
use crate::doc::{Block, Chart, Document, Head, Row, Section, Table};
use crate::svg::{self, ChartLine, ChartPoint};
use crate::{Format, ReportError, html, markdown, text};

/// Writes `answer` in `format`.
///
/// # Errors
/// A value cannot be written as JSON.
pub fn render_simulation(answer: &Answer, format: Format) -> Result<Vec<u8>, ReportError> {
    let text = match format {
        Format::Csv => csv(answer),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Html => html::render(&document(answer)),
        Format::Markdown => markdown::render(&document(answer)),
        Format::Text => text::render(&document(answer)),
    };
    Ok(text.into_bytes())
}

fn measured_tps(answer: &Answer, jobs: u32) -> Option<f64> {
    answer.measured.points.iter().find(|p| p.jobs == jobs).map(|p| p.tps)
}

/// Throughput of `outcome` over that of the platform as measured.
fn times(answer: &Answer, outcome: &Outcome) -> Option<f64> {
    let base = answer.lines.first()?.outcomes.iter().find(|o| o.jobs == outcome.jobs)?;
    Some(outcome.tps / base.tps)
}

fn csv(answer: &Answer) -> String {
    let columns: [Named<'_, (&Line, &Outcome)>; 15] = [
        ("run", &|_| answer.measured.run.clone()),
        ("workload", &|_| answer.measured.workload.clone()),
        ("line", &|(of, _)| of.name.clone()),
        ("bound", &|(of, _)| match of.bound {
            None => String::new(),
            Some(Bound::Slowest) => "slowest".to_owned(),
            Some(Bound::Fastest) => "fastest".to_owned(),
        }),
        ("calibrated_within_pct", &|_| answer.calibration.worst_pct().to_string()),
        ("jobs", &|(_, o)| o.jobs.to_string()),
        ("tps", &|(_, o)| o.tps.to_string()),
        ("tps_within_pct", &|(_, o)| (o.tps_within * 100.0).to_string()),
        ("latency_us", &|(_, o)| o.latency_us.to_string()),
        ("commits_per_sync", &|(_, o)| o.commits_per_sync.to_string()),
        ("syncs_per_s", &|(_, o)| o.syncs_per_s.to_string()),
        ("cpu_us_per_tx", &|(_, o)| o.cpu_us_per_tx.to_string()),
        ("cpu_busy_pct", &|(_, o)| csv::number(o.cpu_busy_pct)),
        ("times_as_measured", &|(_, o)| csv::number(times(answer, o))),
        ("measured_tps", &|(_, o)| csv::number(measured_tps(answer, o.jobs))),
    ];
    csv::table(&columns, answer.lines.iter().flat_map(|line| line.outcomes.iter().map(move |o| (line, o))))
}

/// `+1.2 %`.
fn signed(pct: f64) -> String {
    format!("{}{} %", if pct >= 0.0 { "+" } else { "−" }, number(pct.abs(), 1))
}

fn document(answer: &Answer) -> Document {
    let m = &answer.measured;
    let c = &answer.calibration;
    let left_out = c.worst_left_out_pct();
    let left_out_text = left_out.map_or_else(
        || "too few points to leave one out".to_owned(),
        |pct| format!("{} % at a point left out of its calibration", number(pct, 1)),
    );
    let errors = format!("largest error {} % of the measured throughput, {left_out_text}", number(c.worst_pct(), 1));
    let verdict = if c.good() {
        format!("Calibrated on {} points: {errors}.", c.points.len())
    } else {
        format!(
            "NOT CALIBRATED WELL: {errors}. More than {GOOD_PCT} % at a calibrated point: the model leaves out something that matters \
             here, or the tests were disturbed. Do not use what follows."
        )
    };
    let explains = "A simulation explains, it does not promise: it says what follows from the parts below if nothing else changes. \
                    Measure before you buy.";
    let notes = answer.beyond.iter().chain(&c.notes).map(|note| sentence(note));
    let remarks = std::iter::once(explains.to_owned()).chain(notes).collect();
    let disturbed = m.points.iter().any(|p| p.disturbed.is_some());
    let mut sections = vec![
        Section::of("calibration", "Calibration", calibration(answer)),
        Section::of("what-if", "What if", what_if(answer)),
    ];
    if !answer.checked.is_empty() {
        // The windows of a run that waited for a standby took no part in its calibration.
        let waits = answer.lines.last().is_some_and(|l| l.platform.standby.is_some());
        let own = !waits && answer.checked.iter().all(|c| c.run == m.run);
        let title = if own { "Against the run calibrated on" } else { "Against a measurement that took no part" };
        sections.push(Section::of("checked", title, checked(answer)));
    }
    Document {
        title: format!("{} – {}, simulated", m.product, m.workload),
        subtitle: format!(
            "Calibrated on run {}, {}. Seed {}.",
            m.run,
            m.cpus.map_or_else(
                || "an unknown number of CPUs".to_owned(),
                |n| format!("{} on {}", nodes(m.nodes), counted(n, "CPU", "CPUs"))
            ),
            answer.seed
        ),
        verdict,
        all_well: c.good() && !disturbed,
        remarks,
        sections,
        ..Document::default()
    }
}

/// `note` with a capital and a full stop.
fn sentence(note: &str) -> String {
    let mut chars = note.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

fn counted(n: u32, one: &str, more: &str) -> String {
    format!("{} {}", whole(f64::from(n)), if n == 1 { one } else { more })
}

fn nodes(n: u32) -> String {
    counted(n, "node", "nodes")
}

fn calibration(answer: &Answer) -> Vec<Block> {
    let c = &answer.calibration;
    let absent = |value: Option<f64>, decimals| value.map_or_else(|| ABSENT.to_owned(), |v| number(v, decimals));
    let head =
        [Head::text("Parameter"), Head::number("Used", "µs"), Head::number("Measured", "µs"), Head::text("Source")];
    let rows = c
        .parameters
        .iter()
        .map(|p| Row::of([p.name.to_owned(), number(p.us, 2), absent(p.measured_us, 2), p.source.clone()]));
    let parameters = Table { caption: "Parameters".to_owned(), ..Table::of("facts", head, rows) };
    let of_point = |f: &Fitted| {
        Row::of([
            f.point.jobs.to_string(),
            whole(f.point.tps),
            whole(f.simulated.tps),
            signed(f.error_pct),
            f.left_out_error_pct.map_or_else(|| ABSENT.to_owned(), signed),
            absent(f.point.commits_per_sync, 2),
            number(f.simulated.commits_per_sync, 2),
            absent(f.point.cpu_us_per_tx, 1),
            number(f.simulated.cpu_us_per_tx, 1),
            absent(f.point.sync_us, 1),
        ])
    };
    let head = [
        Head::number("Jobs", ""),
        Head::number("Measured", "tps"),
        Head::number("Simulated", "tps"),
        Head::number("Error", ""),
        Head::number("Left out", "").tip("Error of a model that was calibrated without this point"),
        Head::number("Commits per sync", ""),
        Head::number("simulated", ""),
        Head::number("CPU", "µs/tx"),
        Head::number("simulated", "µs/tx"),
        Head::number("Sync", "µs")
            .tip("Measured in this test: the point is simulated with the device as fast as it was then"),
    ];
    let rows = c.points.iter().map(of_point);
    let points = Table { caption: "Points".to_owned(), ..Table::of("figures", head, rows) };
    vec![Block::Table(points), Block::Table(parameters)]
}

fn what_if(answer: &Answer) -> Vec<Block> {
    let mut rows = Vec::new();
    for of in &answer.lines {
        rows.push(Row::title(&of.name));
        rows.extend(of.outcomes.iter().map(|o| row(answer, o)));
    }
    let head = [
        Head::number("Jobs", ""),
        Head::number("Throughput", "tps"),
        Head::number("±", "%").tip(
            "95 % interval of the simulation by batch means, and of the calibration by the jackknife over its points",
        ),
        Head::number("Latency", "ms"),
        Head::number("Commits per sync", ""),
        Head::number("Syncs", "1/s"),
        Head::number("CPU busy", "%"),
        Head::number("× as measured", "").tip("Throughput over that of the simulated platform as it was measured"),
        Head::number("Measured", "tps"),
    ];
    let table = Table::of("figures", head, rows);
    let several = answer.lines.iter().filter(|l| !l.assumed.is_empty()).count() > 1;
    let said = |l: &Line, text: &str| if several { format!("{}: {text}.", l.name) } else { sentence(text) };
    let assumed: Vec<String> =
        answer.lines.iter().flat_map(|l| l.assumed.iter().map(move |text| said(l, text))).collect();
    let mut blocks = vec![Block::Charts { charts: charts(answer), per_row: 2 }, Block::Table(table)];
    if !assumed.is_empty() {
        blocks.push(Block::para("Assumed:"));
        blocks.push(Block::List { items: assumed });
    }
    blocks
}

fn row(answer: &Answer, o: &Outcome) -> Row {
    Row::of([
        o.jobs.to_string(),
        whole(o.tps),
        number(o.tps_within * 100.0, 1),
        number(o.latency_us / 1e3, 3),
        number(o.commits_per_sync, 2),
        whole(o.syncs_per_s),
        o.cpu_busy_pct.map_or_else(|| ABSENT.to_owned(), |pct| number(pct, 0)),
        times(answer, o).map_or_else(|| ABSENT.to_owned(), |t| number(t, 2)),
        measured_tps(answer, o.jobs).map_or_else(|| ABSENT.to_owned(), whole),
    ])
}

fn charts(answer: &Answer) -> Vec<Chart> {
    let measured_latency = |jobs: u32| {
        answer.measured.points.iter().find(|p| p.jobs == jobs).and_then(|p| p.latency_us).map(|us| us / 1e3)
    };
    let throughput = chart(answer, "Throughput", "tps", |jobs| measured_tps(answer, jobs), |o| o.tps);
    let latency = chart(answer, "Latency", "ms", measured_latency, |o| o.latency_us / 1e3);
    [throughput, latency].into_iter().flatten().collect()
}

/// A chart of what was measured, and of every line.
fn chart(
    answer: &Answer,
    title: &str,
    unit: &str,
    measured: impl Fn(u32) -> Option<f64>,
    simulated: impl Fn(&Outcome) -> f64,
) -> Option<Chart> {
    let point = |name: &str, jobs: u32, y: f64| {
        let tip = format!(
            "{name}, {}: {} {unit}",
            counted(jobs, "job", "jobs"),
            if unit == "ms" { number(y, 3) } else { whole(y) }
        );
        ChartPoint { x: f64::from(jobs), y, bar: None, tip }
    };
    let points = answer.measured.points.iter().filter_map(|p| Some(point("measured", p.jobs, measured(p.jobs)?)));
    let drawn =
        ChartLine { name: "measured".to_owned(), points: points.collect(), opacity: 1.0, ..ChartLine::default() };
    // Two bounds have one colour, and the usual questions one each.
    let colours = answer.lines.iter().scan(0, |next, of| {
        *next += usize::from(of.bound != Some(Bound::Fastest));
        Some(*next - 1)
    });
    let of_line = |(of, colour): (&Line, usize)| {
        let name = if colour == 0 { format!("{}, simulated", of.name) } else { of.name.clone() };
        let points = of.outcomes.iter().map(|o| point(&name, o.jobs, simulated(o))).collect();
        ChartLine { points, colour, opacity: 1.0, dashed: true, name, ..ChartLine::default() }
    };
    let lines: Vec<ChartLine> = std::iter::once(drawn).chain(answer.lines.iter().zip(colours).map(of_line)).collect();
    let jobs = || lines.iter().flat_map(|l| &l.points).map(|p| p.x);
    // From many jobs on, a linear axis has all measured points at its left end.
    let log_x = jobs().fold(0.0, f64::max) / jobs().fold(f64::MAX, f64::min) >= 64.0;
    let chart = svg::Chart {
        title: title.to_owned(),
        x_label: if log_x { "Jobs (logarithmic)".to_owned() } else { "Jobs".to_owned() },
        y_label: format!("{title} [{unit}]"),
        lines,
        markers: true,
        whole_x: true,
        log_x,
        width: 480.0,
        height: 330.0,
        ..svg::Chart::default()
    };
    chart.svg().map(|svg| Chart { svg })
}

fn checked(answer: &Answer) -> Vec<Block> {
    let head = [
        Head::text("Line"),
        Head::text("Run"),
        Head::number("Jobs", ""),
        Head::number("Measured", "tps"),
        Head::number("Simulated", "tps"),
        Head::number("Error", ""),
    ];
    let rows = answer.checked.iter().map(|c| {
        Row::of([
            c.line.clone(),
            c.run.clone(),
            c.jobs.to_string(),
            whole(c.tps),
            c.simulated_tps.iter().map(|tps| whole(*tps)).collect::<Vec<_>>().join(" to "),
            if c.simulated_tps.len() > 1 && c.error_pct == 0.0 { "within".to_owned() } else { signed(c.error_pct) },
        ])
    });
    let table = Table::of("figures", head, rows);
    vec![Block::Table(table)]
}
