//! Relations that the figures of a table show by themselves, whatever its columns are called: one is the product of two others, a
//! sum, a change in percent, or in proportion to another one. Where nearly all rows hold to it with all their digits, a row that
//! does not has a wrong figure.
//!
//! How unlikely that is by chance is counted in bits: a row whose digits leave a small part of what the figures could be holds
//! many. What the number of possible relations explains is taken off.

use crate::audit::context::Context;
use crate::audit::finding::{Finding, Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading, common};
use crate::audit::names;
use crate::audit::names::SETTINGS;
use crate::audit::sheet::{Bound, header_of, is_rate};
use crate::audit::table::Table;
use crate::audit::table::number::Style;
use crate::audit::unit::{Dimension, Of, Per, Unit};

/// Rows and columns of a table that is searched; more is no table that people made.
const ROWS: usize = 1000;
const COLUMNS: usize = 40;
/// Bits beyond chance.
const ENOUGH: f64 = 8.0;
/// Bits with which a proportion must hold at the ends of a table as well.
const CERTAIN: f64 = 40.0;
/// Bits that a name shared by two columns of a relation is worth.
const NAMED: f64 = 4.0;
/// Relative deviation that a curve may have which nearly follows another one.
const NEARLY: f64 = 0.02;
/// Share of a sum that a part of it has at least.
const PART: f64 = 0.02;
/// Part of its value in which a figure lies that follows the others smoothly.
const SMOOTH: f64 = 0.3;
/// Logarithm of what figures of different kinds may differ by.
const ANY: f64 = 14.0;

/// Words for sums and means of other columns.
const TOTALS: [&str; 7] = ["total", "sum", "overall", "all", "average", "avg", "mean"];

/// A column of numbers.
struct Column<'a> {
    index: usize,
    header: &'a str,
    id: Option<&'static str>,
    /// Whether its header is an id of ours: the laws know how such columns go together.
    own: bool,
    /// What it measures, if that is known.
    dimension: Option<Dimension>,
    /// Whether it counts work, per second or in all.
    work: bool,
    /// Whether it is a number of bytes, or a large one of anything.
    size: bool,
    /// Whether its header says that it is computed of others.
    derived: bool,
    words: Vec<String>,
    cells: Vec<Option<Interval>>,
}

impl Column<'_> {
    fn is(&self, ids: &[&str]) -> bool {
        self.id.is_some_and(|id| ids.contains(&id))
    }

    fn measures(&self, of: Of) -> bool {
        self.dimension.is_some_and(|d| d.of == of)
    }
}

/// A relation between columns.
struct Relation<'f> {
    text: String,
    columns: Vec<usize>,
    /// 1 in rows that hold to it; the last of the columns is below the line.
    quotient: &'f dyn Fn(usize) -> Option<Interval>,
    /// What is added to the last column before: 100 to a change in percent.
    offset: f64,
    /// Range in which the logarithm of the quotient lies if nothing is known.
    range: f64,
    /// Bits that the choice of its columns and its constant costs.
    cost: f64,
    /// Whether it has a constant that only the rows show.
    shown: bool,
    /// Bits with which rows at the ends must hold to it as well.
    ends: f64,
}

/// A row that does not hold to a relation.
struct Broken {
    row: usize,
    bits: f64,
    columns: Vec<usize>,
    expected: Option<f64>,
    text: String,
}

struct Search<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
    any: bool,
    broken: Vec<Broken>,
}

/// Searches a table, and says whether there is any relation.
pub(crate) fn search(table: &Table, style: Style, findings: &mut Findings) -> bool {
    if !(3..=ROWS).contains(&table.rows()) {
        return false;
    }
    let columns: Vec<Column<'_>> = (0..table.headers.len()).filter_map(|i| column(table, style, i)).collect();
    if columns.len() > COLUMNS {
        return false;
    }
    let mut search = Search { columns, rows: table.rows(), any: false, broken: Vec::new() };
    search.products();
    search.sums();
    search.changes();
    search.proportions();
    search.broken.sort_by(|a, b| b.bits.total_cmp(&a.bits));
    let mut said: Vec<usize> = Vec::new();
    for broken in search.broken {
        // One wrong cell breaks several relations, and other laws.
        let mut ids: Vec<&'static str> = broken.columns.iter().filter_map(|i| search.columns[*i].id).collect();
        ids.dedup();
        let known = |f: &Finding| f.severity != Severity::Info && f.row == Some(broken.row + 1);
        if said.contains(&broken.row)
            || findings.all.iter().any(|f| known(f) && ids.iter().any(|id| f.columns.contains(id)))
        {
            continue;
        }
        said.push(broken.row);
        let target = broken.columns.last().map(|i| &search.columns[*i]);
        let printed = target.and_then(|c| c.cells[broken.row]).map(|i| i.at);
        findings.push(Finding {
            row: Some(broken.row + 1),
            printed: target.map_or("", |c| table.cell(broken.row, c.index)).to_owned(),
            recomputed: broken.expected.map_or_else(String::new, |v| shown(v, 5)),
            deviation_pct: printed.zip(broken.expected).map(|(p, e)| (p / e - 1.0) * 100.0).filter(|d| d.is_finite()),
            columns: ids,
            ..Context::finding(table, "relations", Severity::Warning, broken.text)
        });
    }
    search.any
}

fn column(table: &Table, style: Style, index: usize) -> Option<Column<'_>> {
    let text = table.headers[index].as_str();
    let header = header_of(table, style, index);
    let own = names::find(text);
    let id = own.or(names::read(&header).map(|m| m.id));
    let bound = Bound::raw(index, header.unit.clone(), table, style);
    let rows = table.rows().min(ROWS);
    let figures: Vec<_> = (0..rows).map(|row| bound.figure(row)).collect();
    let numbers = || figures.iter().flatten();
    let first = numbers().next().map_or(0.0, |f| f.value);
    let numbered = numbers().zip(0u32..).all(|(f, i)| f.value == first + f64::from(i));
    const ASKED: [&str; 6] = ["target", "offered", "requested", "expected", "limit", "max"];
    let rate = header.unit.as_ref().is_none_or(|u| u.dimension.per == Per::Second);
    let asked = rate && !names::is_derived(&header) && header.words.iter().any(|w| ASKED.contains(&w.as_str()));
    let name = id.is_some_and(|id| matches!(id, "test" | "run" | "repetition")) || own == Some("rate_tps");
    if numbers().count() * 4 < rows * 3 || numbered || asked || name {
        return None;
    }
    let unit = header.unit.as_ref().map(|u| u.dimension);
    let is_size = |u: Dimension| u.of == Of::Bytes && u.per == Per::Whole;
    let is_work = |u: Dimension| u.per == Per::Second && matches!(u.of, Of::One | Of::Bytes);
    let of = |id: &'static str| Unit::of_id(id).dimension;
    // Whole numbers without a unit are counts, and round sizes are settings.
    let share = unit.is_some_and(|u| u.of == Of::Share) && id.is_none();
    let derived = share || names::is_derived(&header);
    let bare = (0..rows).all(|row| !table.cell(row, index).ends_with(|c: char| !c.is_ascii_digit()));
    let power = |v: f64| v.log2().fract() == 0.0 || v.log10().fract() == 0.0;
    let size = unit.is_some_and(is_size) && numbers().all(|f| power(f.value));
    let counts = unit.is_none() && id.is_none_or(|id| SETTINGS.contains(&id) || of(id).of == Of::One);
    let per = header.words.iter().any(|w| w == "per");
    let whole = numbers().all(|f| f.value.fract() == 0.0);
    let exact = bare && whole && !derived && !per && (counts || size);
    let many = exact && unit.is_none() && id.is_none() && numbers().any(|f| f.value >= 1000.0);
    Some(Column {
        index,
        header: text,
        id,
        own: own.is_some(),
        dimension: match (unit, own) {
            (Some(unit), _) => Some(unit).filter(|u| u.per != Per::Whole || !is_rate(&header)),
            (None, Some(own)) => Some(of(own)),
            (None, None) => id.filter(|id| SETTINGS.contains(id)).map(of),
        },
        work: unit.is_some_and(is_work) || id.is_some_and(|id| id == "commits" || is_work(of(id))),
        size: many || unit.is_some_and(is_size),
        derived,
        words: text.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect(),
        cells: figures
            .iter()
            .map(|f| f.map(|f| if exact { Interval::exact(f.value) } else { Interval::of(f, Reading::Rounded) }))
            .collect(),
    })
}

/// Constants between units, with the bits that they cost: thousands, kilobytes, minutes, bits, percent, sectors.
fn constants() -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = vec![(1.0, 0.0), (512.0, 5.0), (2.0, 5.0), (2048.0, 5.0)];
    all.extend((1..4).flat_map(|power| [(1000f64.powi(power), 3.0), (1024f64.powi(power), 3.0)]));
    let units = all.clone();
    for by in [60.0, 3600.0, 100.0, 8.0] {
        all.extend(units.iter().flat_map(|(k, cost)| [(k * by, cost + 3.0), (k / by, cost + 3.0)]));
    }
    let inverse: Vec<_> = all.iter().map(|(k, cost)| (1.0 / k, *cost)).collect();
    all.extend(inverse);
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    all.dedup_by(|b, a| (a.0 / b.0 - 1.0).abs() < 1e-9);
    all
}

impl Search<'_> {
    fn cell(&self, column: usize, row: usize) -> Option<Interval> {
        self.columns[column].cells[row].filter(|v| v.low > 0.0)
    }

    fn name(&self, column: usize) -> String {
        format!("'{}'", self.columns[column].header)
    }

    /// Bits that one of so many relations costs.
    fn cost(&self, of: &dyn Fn(f64) -> f64) -> f64 {
        of(self.columns.len() as f64).max(1.0).log2()
    }

    fn test(&mut self, relation: &Relation<'_>) {
        let value = |i: &usize, row: usize| self.columns[*i].cells[row].map(|c| c.at);
        let among = |test: &dyn Fn(&Column<'_>) -> bool| relation.columns.iter().any(|i| test(&self.columns[*i]));
        // Little's law says more of these.
        let time =
            |c: &Column<'_>| c.id.is_some_and(|id| id == "commit_latency_ms" || id.starts_with("transaction_time"));
        let jobs = |c: &Column<'_>| c.is(&["jobs", "threads", "nodes"]);
        let little = among(&time) && among(&|c| c.is(&names::THROUGHPUTS)) && self.columns.iter().any(jobs);
        let of_jobs = among(&jobs) && among(&|c| c.measures(Of::Time));
        if !relation.shown
            && (little && relation.columns.iter().filter(|i| self.columns[**i].measures(Of::Time)).count() < 2
                || of_jobs)
        {
            return;
        }
        // "Rows/s" beside "Rows", "TPM/NOPM" beside both.
        let named = |i: &&usize| {
            let others = relation.columns.iter().filter(|j| j != i).flat_map(|j| &self.columns[*j].words);
            self.columns[**i].words.first().is_some_and(|word| others.into_iter().any(|w| w == word))
        };
        let mut bits = NAMED / 2.0 * relation.columns.iter().filter(named).count() as f64 - relation.cost;
        let (mut held, mut off, mut least): (Vec<usize>, Vec<(usize, Interval)>, _) =
            (Vec::new(), Vec::new(), f64::INFINITY);
        for row in 0..self.rows {
            let Some(sides) = (relation.quotient)(row) else { continue };
            if !sides.holds(1.0) {
                off.push((row, sides));
                continue;
            }
            // A curve is smooth, and a test that is there twice shows nothing more.
            if !held.iter().any(|r| relation.columns.iter().all(|i| value(i, *r) == value(i, row))) {
                let range = if held.is_empty() { relation.range } else { SMOOTH };
                let more = (range / (sides.high - sides.low).max(1e-9)).log2().max(0.0);
                (bits, least) = (bits + more, more.min(least));
            }
            held.push(row);
        }
        // One row shows the constant.
        bits -= if relation.shown { least } else { 0.0 };
        let count = held.len() + off.len();
        if held.len() < 2 || off.len() > (count / 5).max(1) || bits < ENOUGH {
            return;
        }
        // Whether it multiplies or divides by a column that is the same in all rows, these do not show.
        let decided = |row: usize| {
            let same = |i: &usize| held.iter().all(|r| value(i, *r) == value(i, held[0]));
            relation.columns.iter().all(|i| !same(i) || value(i, row) == value(i, held[0]))
        };
        let inside = |row: usize| bits >= relation.ends || held.first() < Some(&row) && held.last() > Some(&row);
        let far = |q: &Interval| q.low > 1.0 + NEARLY || q.high < 1.0 - NEARLY;
        let expected = |row, q: &Interval| {
            Some((value(relation.columns.last()?, row)? + relation.offset) * q.at - relation.offset)
        };
        let broken = off.iter().filter(|(row, q)| far(q) && decided(*row) && inside(*row)).map(|(row, q)| Broken {
            row: *row,
            bits,
            columns: relation.columns.clone(),
            expected: expected(*row, q),
            text: format!(
                "{} in {} of {count} rows, and not in this one: a wrong digit, or a figure of another test",
                relation.text,
                held.len()
            ),
        });
        let broken: Vec<Broken> = broken.collect();
        self.broken.extend(broken);
        self.any = true;
    }

    /// a × b = constant × c.
    fn products(&mut self) {
        let constants = constants();
        let cost = self.cost(&|n| n * (n - 1.0) * (n - 2.0) / 2.0);
        let n = self.columns.len();
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            for c in (0..n).filter(|c| *c != a && *c != b) {
                let percentile = self.is_percentile_of_jobs([a, b, c]);
                if !percentile && !self.is_possible([a, b, c]) {
                    continue;
                }
                let cells: Vec<Option<Interval>> = (0..self.rows)
                    .map(|row| Some(self.cell(a, row)?.times(self.cell(b, row)?).over(self.cell(c, row)?)))
                    .collect();
                let mut tried: Vec<(f64, f64, bool)> = Vec::new();
                // What is wider tells nothing.
                for first in cells.iter().flatten().take(3).filter(|q| q.high < q.low * 1.2) {
                    let from = constants.partition_point(|(k, _)| *k < first.low);
                    let near = constants[from..].iter().take_while(|(k, _)| *k <= first.high);
                    tried.extend(near.map(|(k, cost)| (*k, *cost, false)));
                }
                // A column that is computed of others may hold any constant.
                let derived = [a, b, c].iter().any(|i| self.columns[*i].derived);
                if self.rows > 3 && (derived && tried.is_empty() || percentile) {
                    let all: Vec<Interval> = cells.iter().flatten().copied().collect();
                    tried.extend(common(&all).filter(|(k, _)| *k > 0.0).map(|(k, _)| (k, 0.0, true)));
                }
                tried.dedup();
                for (k, more, shown_by_rows) in tried {
                    let constant = if k == 1.0 { String::new() } else { format!(" × {}", shown(k, 7)) };
                    self.test(&Relation {
                        text: format!("{} × {} = {}{constant}", self.name(a), self.name(b), self.name(c)),
                        columns: vec![a, b, c],
                        quotient: &|row| Some(cells[row]?.scaled(1.0 / k)),
                        offset: 0.0,
                        range: if shown_by_rows { SMOOTH } else { ANY },
                        cost: cost + more,
                        shown: shown_by_rows,
                        ends: if percentile { f64::INFINITY } else { 0.0 },
                    });
                }
            }
        }
    }

    /// Whether bytes and seconds are the same on both sides, and no law knows of these columns already.
    fn is_possible(&self, of: [usize; 3]) -> bool {
        let powers = |i: usize| {
            let d = self.columns[i].dimension?;
            let seconds = i32::from(d.of == Of::Time) - i32::from(d.per == Per::Second);
            Some((i32::from(d.of == Of::Bytes), seconds))
        };
        let known = of.iter().all(|i| self.columns[*i].own);
        !known
            && match of.map(powers) {
                [Some(a), Some(b), Some(c)] => (a.0 + b.0, a.1 + b.1) == c,
                _ => true,
            }
    }

    /// Little's law with a percentile, of which the mean is a part that the rows show.
    fn is_percentile_of_jobs(&self, [a, b, c]: [usize; 3]) -> bool {
        let time = |i: usize| self.columns[i].id.is_some_and(|id| id.starts_with("transaction_time_ns_p"));
        let work = |i: usize| self.columns[i].work;
        self.columns[c].is(&["jobs"]) && (work(a) && time(b) || time(a) && work(b))
    }

    /// Sums of two columns, and sums and means of several beside each other.
    fn sums(&mut self) {
        let n = self.columns.len();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| vec![a, b]));
        let runs = (0..n).flat_map(|a| (a + 3..=n.min(a + 12)).map(move |end| (a..end).collect::<Vec<_>>()));
        let cost = self.cost(&|n| n * n * n);
        for parts in pairs.chain(runs) {
            for c in (0..n).filter(|c| !parts.contains(c)) {
                let unlike = |i: &usize| self.columns[*i].dimension != self.columns[c].dimension;
                if parts.iter().any(unlike) || parts.iter().chain([&c]).all(|i| self.columns[*i].own) {
                    continue;
                }
                for by in [1.0, parts.len() as f64] {
                    let quotient = |row: usize| {
                        let cells: Option<Vec<Interval>> = parts.iter().map(|i| self.columns[*i].cells[row]).collect();
                        let (cells, whole) = (cells?, self.cell(c, row)?);
                        // What is next to nothing is no part.
                        let parts = cells.iter().all(|part| part.at > PART * whole.at);
                        let sum = cells.into_iter().fold(Interval::exact(0.0), Interval::plus);
                        parts.then(|| sum.over(whole).scaled(1.0 / by))
                    };
                    // Soon it is clear that it is none.
                    if (0..self.rows).filter_map(&quotient).take(3).filter(|q| q.holds(1.0)).count() < 2 {
                        continue;
                    }
                    let cells: Vec<Option<Interval>> = (0..self.rows).map(&quotient).collect();
                    let names: Vec<String> = parts.iter().map(|i| self.name(*i)).collect();
                    let total = self.columns[c].words.iter().any(|w| TOTALS.contains(&w.as_str()));
                    let what = if by == 1.0 { names.join(" + ") } else { format!("mean of {}", names.join(", ")) };
                    self.test(&Relation {
                        text: format!("{what} = {}", self.name(c)),
                        columns: parts.iter().copied().chain([c]).collect(),
                        quotient: &|row| cells[row],
                        offset: 0.0,
                        range: 1.0,
                        cost: cost - if total { NAMED } else { 0.0 },
                        shown: false,
                        ends: 0.0,
                    });
                }
            }
        }
    }

    /// A column of changes in percent: b / a = 1 + c / 100, or 1 − c / 100.
    fn changes(&mut self) {
        let n = self.columns.len();
        let cost = self.cost(&|n| n * n);
        for c in (0..n).filter(|c| self.columns[*c].derived).collect::<Vec<_>>() {
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b && *a != c && *b != c)
            {
                for offset in [100.0, -100.0f64] {
                    let quotient = |row: usize| {
                        let change = self.columns[c].cells[row]?.plus(Interval::exact(offset)).scaled(1.0 / offset);
                        let change =
                            Interval { low: change.low.min(change.high), high: change.low.max(change.high), ..change };
                        Some(self.cell(b, row)?.over(self.cell(a, row)?).over(change))
                    };
                    let cells: Vec<Option<Interval>> = (0..self.rows).map(quotient).collect();
                    self.test(&Relation {
                        text: format!(
                            "{} is the change from {} to {} in percent",
                            self.name(c),
                            self.name(a),
                            self.name(b)
                        ),
                        columns: vec![a, b, c],
                        quotient: &|row| cells[row],
                        offset,
                        range: SMOOTH,
                        cost,
                        shown: false,
                        ends: 0.0,
                    });
                }
            }
        }
    }

    /// Work that is in proportion to other work, as queries to transactions; times and shares to others; and what is computed of
    /// another column, as a speed-up is of throughput, or of one over the time.
    fn proportions(&mut self) {
        let n = self.columns.len();
        let cost = self.cost(&|n| n * (n - 1.0) / 2.0);
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            let (one, other) = (&self.columns[a], &self.columns[b]);
            let derived = one.derived != other.derived;
            let twice = one.id.is_some() && one.id == other.id && !derived;
            let work = one.work && (other.work || other.size) || one.size && other.work;
            let ours = one.own && other.own;
            let time = !ours && (one.work && other.measures(Of::Time) || one.measures(Of::Time) && other.work);
            let alike = one.dimension.is_some()
                && one.dimension == other.dimension
                && (one.measures(Of::Time) || one.measures(Of::Share));
            let varies = (0..self.rows).any(|row| self.cell(a, row).map(|i| i.at) != self.cell(a, 0).map(|i| i.at));
            for inverse in [false, true] {
                if !varies || !(derived || (work || alike) && !inverse || time && inverse) {
                    continue;
                }
                let quotient = |row: usize| {
                    let b = self.cell(b, row)?;
                    Some(if inverse { Interval::exact(1.0).over(b) } else { b }.over(self.cell(a, row)?))
                };
                let cells: Vec<Option<Interval>> = (0..self.rows).map(quotient).collect();
                let all: Vec<Interval> = cells.iter().flatten().copied().collect();
                // The same figure twice.
                let same = twice && all.iter().filter(|q| q.holds(1.0)).count() > 1;
                let k = if same { Some(1.0) } else { common(&all).map(|(k, _)| k).filter(|_| all.len() > 3) };
                let Some(k) = k.filter(|k| *k > 0.0) else { continue };
                // What went wrong under the highest load is what two equal counts differ by.
                let counts = (k - 1.0).abs() < PART;
                self.test(&Relation {
                    text: format!(
                        "{} is {} {} {}",
                        self.name(a),
                        shown(1.0 / k, 5),
                        if inverse { "/" } else { "×" },
                        self.name(b)
                    ),
                    columns: vec![b, a],
                    quotient: &|row| Some(cells[row]?.scaled(1.0 / k)),
                    offset: 0.0,
                    range: SMOOTH,
                    cost,
                    shown: !same,
                    ends: if derived || same {
                        0.0
                    } else if counts {
                        f64::INFINITY
                    } else {
                        CERTAIN
                    },
                });
            }
        }
    }
}
