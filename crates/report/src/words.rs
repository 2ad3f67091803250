//! Columns of tables, and words for them, their figures and points of a sweep: the same in tables, charts and sentences.

pub(crate) use loadline_model::group::{distinct, grouped};

use loadline_analyze::Sweep;
use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_model::column::{self, COLUMNS, column};
use loadline_model::format::{Format, counted, nearest, number, whole};
use loadline_model::{Column, Table, TestRecord, Validity};

use crate::ReportError;

/// The columns named by `ids`; `None` without `ids`.
pub(crate) fn chosen_columns(ids: Option<&[String]>) -> Result<Option<Vec<&'static Column>>, ReportError> {
    let Some(ids) = ids else { return Ok(None) };
    let wanted: Vec<&str> = ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()).collect();
    if wanted.is_empty() {
        return Err(ReportError::NoColumn);
    }
    let all = || COLUMNS.iter().map(|c| c.id);
    let find = |id: &&str| {
        column(id).ok_or_else(|| {
            let nearest = nearest(id, all());
            let others = all().filter(|c| c.contains(&id.to_lowercase()) && nearest != Some(*c));
            ReportError::UnknownColumn {
                given: (*id).to_owned(),
                near: nearest.into_iter().chain(others).take(4).collect(),
            }
        })
    };
    wanted.iter().map(find).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Columns of files that hold `records`: those of every group's table, each once.
pub(crate) fn columns_of_files<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Vec<&'static Column> {
    let mut groups: Vec<&str> = records.map(|r| r.group.as_str()).collect();
    groups.dedup();
    if groups.is_empty() {
        groups.push("");
    }
    distinct(groups.iter().flat_map(|g| Table::for_group(g).file_columns()))
}

/// `n` (in the column's stored unit) in the format of the column.
pub(crate) fn value(column: &Column, n: f64) -> String {
    match column.format {
        Format::Integer => whole(n),
        Format::Fixed(decimals) => number(n, decimals),
        Format::NsAsMs => number(n / 1e6, 3),
        Format::Text | Format::YesNo => n.to_string(),
    }
}

/// By what a stored value of `column` is multiplied to have the unit that is shown.
pub(crate) fn scale(column: &Column) -> f64 {
    if column.format == Format::NsAsMs { 1e-6 } else { 1.0 }
}

/// Whether cells of `column` are aligned right.
pub(crate) fn is_numeric(column: &Column) -> bool {
    !matches!(column.format, Format::Text | Format::YesNo)
}

/// A column's title within a sentence: `commit latency`, but `SQL service time` and `I/O`.
pub(crate) fn lower(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(letters).collect(),
        _ => title.to_owned(),
    }
}

/// The column's title. Outside the log-writer group (`log` is false), titles say transaction instead of commit.
pub(crate) fn title_of(column: &Column, log: bool) -> &'static str {
    match column {
        _ if log => column.title,
        c if c == LATENCY => "Transaction time",
        c if c == THROUGHPUT => "Transactions",
        _ => column.title,
    }
}

/// Title with its unit: `Transactions [tps]`.
pub(crate) fn heading_of(column: &Column, log: bool) -> String {
    let title = title_of(column, log);
    if column.unit.is_empty() { title.to_owned() } else { format!("{title} [{}]", column.unit) }
}

/// The unit of a rate in words: `queries/s`, `MiB/s redo`, `tps`.
pub(crate) fn unit(column: &Column) -> String {
    let title = lower(column.title);
    if column == column::CHECKPOINT_TPS {
        return "tps in checkpoint".to_owned();
    }
    if column == column::CALM_TPS {
        return "tps outside checkpoints".to_owned();
    }
    match column.unit {
        "1/s" => format!("{title}/s"),
        "MiB/s" if title == "data" => "MiB/s".to_owned(),
        "MiB/s" => format!("MiB/s {}", title.trim_end_matches(" data")),
        "million/s" => "million op/s".to_owned(),
        unit => unit.to_owned(),
    }
}

/// Title of the swept column: `Rows per transaction`; the id if there is no such column.
pub(crate) fn swept_title(over: &str) -> String {
    column(over).map_or_else(|| over.replace('_', " "), |c| c.title.to_owned())
}

/// Short title of the swept column within a sentence: `rows/tx`.
pub(crate) fn swept(over: &str) -> String {
    lower(&swept_title(over)).replace(" per transaction", "/tx")
}

/// How many tests are what: `9 valid, 2 disturbed, 1 refused, 3 imported and not checked`; of valid ones in any case.
pub(crate) fn validities<'a>(records: impl Iterator<Item = &'a TestRecord> + Clone) -> String {
    let count = |of: Option<Validity>| records.clone().filter(|r| r.validity() == of).count();
    let all = Validity::ALL.map(|of| (Some(of), of.name())).into_iter().chain([(None, "imported and not checked")]);
    let counted = all.map(|(of, name)| (count(of), of, name));
    let said =
        counted.filter(|(n, of, _)| *n > 0 || *of == Some(Validity::Valid)).map(|(n, _, name)| format!("{n} {name}"));
    said.collect::<Vec<_>>().join(", ")
}

/// A point of a sweep in words: `4 jobs`, `100 rows/tx`.
pub(crate) fn place(over: &str, at: u32) -> String {
    let words = swept(over);
    let at_text = number(f64::from(at), 0);
    if let Some(unit) = column(over).map(|c| c.unit).filter(|unit| !unit.is_empty()) {
        return format!("{at_text} {unit} {words}");
    }
    let (things, per) = words.split_once('/').map_or((words.as_str(), String::new()), |(t, p)| (t, format!("/{p}")));
    let one = || things.strip_suffix("xes").map(|t| format!("{t}x")).or(things.strip_suffix('s').map(str::to_owned));
    let things = if at == 1 { one().unwrap_or_else(|| things.to_owned()) } else { things.to_owned() };
    format!("{at_text} {things}{per}")
}

/// Points of a sweep in words: `4, 8 jobs`.
pub(crate) fn places(over: &str, points: &[u32]) -> String {
    let (last, before) = points.split_last().map_or((0, &[][..]), |(last, before)| (*last, before));
    before.iter().map(|at| format!("{at}, ")).collect::<String>() + &place(over, last)
}

/// `text` without its numbers, to find reasons that differ only in numbers.
pub(crate) fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | ',')).collect()
}

/// `text` cut after a word to at most `most` characters, then `…`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most).collect();
    let end = head.rfind(' ').unwrap_or(head.len());
    format!("{}…", head[..end].trim_end_matches([' ', ',', ';', ':']))
}

/// [`name`] without the swept column and rate, which [`short_place`] shows next to it.
pub(crate) fn short_name(sweep: &Sweep, all: &[Sweep]) -> String {
    named(sweep, all, false)
}

/// A point of `sweep`, with the rate of an open loop: `1 job, 20 tps`.
pub(crate) fn short_place(sweep: &Sweep, at: u32) -> String {
    let place = place(&sweep.over, at);
    let decimals = |rate: f64| usize::from(rate.fract() != 0.0);
    sweep.load.rate_tps.map_or(place.clone(), |rate| format!("{place}, {} tps", number(rate, decimals(rate))))
}

/// The workload, with what distinguishes the sweep from others of the same workload on the platform.
pub(crate) fn name(sweep: &Sweep, all: &[Sweep]) -> String {
    named(sweep, all, true)
}

fn named(sweep: &Sweep, all: &[Sweep], in_full: bool) -> String {
    let alike = |s: &&Sweep| s.workload == sweep.workload && s.run == sweep.run && s.platform == sweep.platform;
    let mut out = sweep.workload.clone();
    if !sweep.over_jobs() && in_full {
        out = format!("{out} over {}", swept(&sweep.over));
    }
    let others = || all.iter().filter(alike).filter(|s| s.over == sweep.over);
    if others().any(|s| s.nodes != sweep.nodes) {
        out = format!("{out} on {}", counted(sweep.nodes as usize, "node"));
    }
    if others().filter(|s| s.nodes == sweep.nodes).count() > 1 {
        let parameters = sweep.parameters.iter().map(|(k, v)| format!("{k} {v}"));
        let parts: Vec<String> = std::iter::once(format!("{} driver", sweep.driver)).chain(parameters).collect();
        out = format!("{out} ({})", parts.join(", "));
    }
    match sweep.load.rate_tps {
        Some(_) if !in_full => {}
        Some(rate) => out += &format!(" at {} tps, open loop", number(rate, 1)),
        None if sweep.load.is_mixed() => {
            let (n, sessions) = (sweep.load.populations.len(), sweep.load.sessions_and_keys());
            out += &format!(", mix of {n} populations{sessions}");
        }
        None => out += &sweep.load.beside_closed_loop(),
    }
    out
}

/// `1–4, 7`.
pub(crate) fn spans(tests: &[u32]) -> String {
    let mut sorted = tests.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::new();
    for test in sorted {
        match out.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(test) => *end = test,
            _ => out.push((test, test)),
        }
    }
    let span = |(a, b): (u32, u32)| if a == b { a.to_string() } else { format!("{a}–{b}") };
    out.into_iter().map(span).collect::<Vec<_>>().join(", ")
}

/// `test 4`, or `tests 1–4, 7`.
pub(crate) fn tests_named(tests: &[u32]) -> String {
    format!("test{} {}", if tests.len() == 1 { "" } else { "s" }, spans(tests))
}

/// `is`, or `are` of several.
pub(crate) fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Texts with what they are about, by text; texts that differ only in numbers are one.
pub(crate) fn alike<S: AsRef<str>, T>(said: impl IntoIterator<Item = (S, T)>) -> Vec<(S, Vec<T>)> {
    let groups = grouped(said, |(text, _)| without_numbers(text.as_ref()));
    let whole = |(_, of): (String, Vec<(S, T)>)| {
        let (texts, subjects): (Vec<S>, Vec<T>) = of.into_iter().unzip();
        texts.into_iter().next().map(|text| (text, subjects))
    };
    groups.into_iter().filter_map(whole).collect()
}

/// `1.034`.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        0.1..100.0 => format!("{value:.3}"),
        // Three digits that count.
        _ => format!("{value:.*}", (2.0 - value.max(1e-12).log10().floor()) as usize),
    }
}

/// `12 %`, `1.5 %`: a share of 1.
pub(crate) fn percent(share: f64) -> String {
    if share >= 0.1 { format!("{:.0} %", share * 100.0) } else { format!("{:.1} %", share * 100.0) }
}

/// A time of `0.412` ms: three digits after the point, or four that count.
pub(crate) fn millis(ms: f64) -> String {
    if ms.abs() < 100.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

/// A difference of times, ms: `+0.412`.
pub(crate) fn signed(ms: f64) -> String {
    if ms < 0.0 { format!("−{}", millis(-ms)) } else { format!("+{}", millis(ms)) }
}

/// `6`, or `5 of 6` if one was dropped.
pub(crate) fn of_pairs(all: usize, dropped: usize) -> String {
    if dropped == 0 { all.to_string() } else { format!("{} of {all}", all - dropped) }
}

/// `A`, `B`, … `Z`, `AA`, ….
pub(crate) fn letters(n: usize) -> String {
    let last = char::from(b'A' + (n % 26) as u8);
    if n < 26 { last.to_string() } else { format!("{}{last}", letters(n / 26 - 1)) }
}

/// `text` without a final full stop.
pub(crate) fn stop(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
}

/// An RFC 3339 time in UTC as `2025-01-02 03:04:05 UTC`; anything else unchanged.
pub(crate) fn when(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(10..11), rfc3339.get(11..19), rfc3339.strip_suffix('Z')) {
        (Some(day), Some("T"), Some(time), Some(_)) => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_analyze::sweep::JOBS;

    #[test]
    fn points_units_and_spans_in_words() {
        let points = [(JOBS, 1_024), ("rows_per_tx", 1), ("redo_kib_per_tx", 7), ("no_such_column", 7)];
        let said = ["1,024 jobs", "1 row/tx", "7 KiB/tx redo data", "7 no such column"];
        assert_eq!(points.map(|(over, at)| place(over, at)), said);
        assert_eq!([column::REDO_MIB_PER_S, column::DATA_MIB_PER_S].map(unit), ["MiB/s redo", "MiB/s"]);
        assert_eq!([("one two three", 9), ("äääää", 3)].map(|(text, width)| cut(text, width)), ["one two…", "äää…"]);
        assert_eq!(without_numbers("a 1.5 of 12,300 x"), without_numbers("a 7 of 8 x"));
        assert_eq!(lower("SQL service time"), "SQL service time");
        assert_eq!(spans(&[7, 1, 2, 3, 9]), "1–3, 7, 9");
        assert_eq!(spans(&[u32::MAX, u32::MAX - 1]), "4294967294–4294967295");
    }
}
