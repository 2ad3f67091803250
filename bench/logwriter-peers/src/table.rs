//! The rounds as a table: medians, their spread, and ratios taken round by round.

use std::collections::BTreeMap;

use crate::harness::Figures;

/// Outcome of a contestant in each round: its figures, why there are none, or that it was not its turn.
pub(crate) type Rounds = Vec<Option<Result<Figures, String>>>;

/// One section of the report.
pub(crate) struct Table {
    title: String,
    /// Unit of the rates, and what one is divided by to be shown in it.
    unit: (&'static str, f64),
    rows: Vec<(String, usize)>,
    rounds: BTreeMap<(String, usize), Rounds>,
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => values.get(middle).copied(),
        _ => Some((values.get(middle - 1)? + values.get(middle)?) / 2.0),
    }
}

/// Quartiles: half of the values lie between them.
pub(crate) fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((*sorted.get(last / 4)?, *sorted.get(last - last / 4)?))
}

fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

impl Table {
    pub(crate) fn new(title: &str, unit: &'static str, divisor: f64) -> Table {
        let (rows, rounds) = (Vec::new(), BTreeMap::new());
        Table { title: title.to_owned(), unit: (unit, divisor), rows, rounds }
    }

    /// Adds what `name` with `jobs` jobs did in one round.
    pub(crate) fn add(&mut self, name: &str, jobs: usize, figures: Option<Result<Figures, String>>) {
        let key = (name.to_owned(), jobs);
        if !self.rows.contains(&key) {
            self.rows.push(key.clone());
        }
        self.rounds.entry(key).or_default().push(figures);
    }

    fn values(&self, row: &(String, usize), of: fn(&Figures) -> f64) -> Vec<f64> {
        self.rounds.get(row).into_iter().flatten().flatten().flatten().map(of).collect()
    }

    /// The median over the rounds of what `row` made of what `base` made in the same round.
    pub(crate) fn ratio(&self, row: (&str, usize), base: (&str, usize), of: fn(&Figures) -> f64) -> Option<f64> {
        let key = |(name, jobs): (&str, usize)| (name.to_owned(), jobs);
        let (row, base) = (self.rounds.get(&key(row))?, self.rounds.get(&key(base))?);
        let figures = |round: &Option<Result<Figures, String>>| round.clone()?.ok();
        let pairs = row.iter().zip(base).filter_map(|(a, b)| Some(of(&figures(a)?) / of(&figures(b)?)));
        median(pairs.collect())
    }

    /// The median CPU time a commit of `row` to that of `base`. Not round by round: CPU time does not
    /// follow what the storage does at the moment.
    pub(crate) fn cpu_ratio(&self, row: (&str, usize), base: (&str, usize)) -> Option<f64> {
        let of = |(name, jobs): (&str, usize)| median(self.values(&(name.to_owned(), jobs), |f| f.cpu_us));
        Some(of(row)? / of(base)?)
    }

    /// The table as text; rates and CPU as ratios to `bases` beside them. `order` gives the rows.
    pub(crate) fn text(&self, bases: &[(&str, usize, &str)]) -> String {
        let number = |v: Option<f64>, digits: usize| v.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"));
        let (unit, divisor) = self.unit;
        let mut lines = vec![vec![
            "".to_owned(),
            "jobs".into(),
            unit.into(),
            "lowest–highest".into(),
            "CPU µs each".into(),
            "lowest–highest".into(),
        ]];
        lines[0].extend(bases.iter().map(|(_, _, title)| (*title).to_owned()));
        let mut notes = Vec::new();
        let mut rows = self.rows.clone();
        rows.sort_by_key(|(_, jobs)| *jobs);
        for row in &rows {
            let (rates, cpu) = (self.values(row, |f| f.rate), self.values(row, |f| f.cpu_us));
            let rates: Vec<f64> = rates.iter().map(|r| r / divisor).collect();
            let range = |v: &[f64], digits: usize| {
                spread(v).map_or_else(|| "–".to_owned(), |(a, b)| format!("{a:.digits$}–{b:.digits$}"))
            };
            let mut line = vec![
                row.0.clone(),
                row.1.to_string(),
                number(median(rates.clone()), 0),
                range(&rates, 0),
                number(median(cpu.clone()), 1),
                range(&cpu, 1),
            ];
            for (name, jobs, _) in bases {
                line.push(number(self.ratio((&row.0, row.1), (name, *jobs), |f| f.rate), 2));
            }
            lines.push(line);
            let failed = self.rounds.get(row).into_iter().flatten().flatten().find_map(|r| r.as_ref().err());
            notes.extend(failed.map(|why| format!("{}, {} jobs: {why}", row.0, row.1)));
        }
        let columns = lines[0].len();
        let width = |c: usize| lines.iter().filter_map(|l| l.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for line in &lines {
            for (c, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                text += &if c == 0 { format!("{cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            text = text.trim_end().to_owned() + "\n";
        }
        for note in notes {
            text += &format!("not measured in every round: {note}\n");
        }
        text
    }
}
