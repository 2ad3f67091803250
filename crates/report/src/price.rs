//! What the platforms cost: a price list, and throughput for the price. A total is of three years, or of an hour if all prices are by the hour.

use std::fmt;

use loadline_analyze::{Comparison, Sweep};
use loadline_model::facts::capacity_bytes;
use loadline_model::format::{ABSENT, number};
use loadline_model::{Column, Manifest};
use minijinja::context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::value::Datetime;

use crate::columns::{scale, value};
use crate::doc::{Block, Cell, Notes, Section, Table};
use crate::listing::{Listing, Named};
use crate::platform_run::{PlatformRun, by_variant, comparisons, sides, swept};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, place, ratio, unit};
use crate::{ReportError, RunData};

/// Hours of three years.
const HOURS: f64 = 3.0 * 365.0 * 24.0;
/// Facts that are added to the capacity of a platform.
const CAPACITIES: [&str; 3] = ["persistent-memory", "flash", "disk"];

/// Why a price list is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // Its text says what each is.
pub enum PriceError {
    #[error("line {line}: {message}")]
    Toml { line: usize, message: String },
    #[error("it has no [[price]]")]
    Empty,
    #[error("the price of '{0}' has no date: a price holds on a day; write date = \"2021-06-01\"")]
    NoDate(String),
    #[error("the price of '{platform}' has the date '{date}': write a day as in \"2021-06-01\"")]
    BadDate { platform: String, date: String },
    #[error("the price of '{platform}' is {amount}: it must be a number above 0")]
    Amount { platform: String, amount: String },
    #[error("the price of '{platform}' is in '{currency}': write three letters as in EUR")]
    Currency { platform: String, currency: String },
    #[error("prices are in {0} and {1}: loadline does not convert; write all in one currency")]
    Mixed(String, String),
    #[error("the price of '{0}' does not say what it covers: write covers = \"2 servers, 3 years of support\"")]
    Covers(String),
    #[error("'{0}' has two [[price]]: write one, and what comes on top as [[licence]]")]
    Twice(String),
    #[error("'{0}' has a [[licence]] and no [[price]]")]
    OnlyLicence(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PriceKind {
    Once,
    PerHour,
}

/// A day as TOML has it, or as a text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Day {
    Native(Datetime),
    Text(String),
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Day::Native(day) => day.fmt(f),
            Day::Text(text) => f.write_str(text),
        }
    }
}

/// An entry of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    platform: String,
    amount: f64,
    currency: String,
    date: Option<Day>,
    kind: PriceKind,
    covers: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<Entry>,
    #[serde(default)]
    licence: Vec<Entry>,
}

/// A price, or a licence on top of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Price {
    platform: String,
    is_licence: bool,
    amount: f64,
    date: String,
    kind: PriceKind,
    covers: String,
}

impl Price {
    fn new(entry: Entry, is_licence: bool) -> Result<Price, PriceError> {
        let Entry { platform, amount, currency, date, kind, covers } = entry;
        if !amount.is_finite() || amount <= 0.0 {
            return Err(PriceError::Amount { platform, amount: amount.to_string() });
        }
        if currency.len() != 3 || !currency.bytes().all(|c| c.is_ascii_uppercase()) {
            return Err(PriceError::Currency { platform, currency });
        }
        let Some(date) = date.map(|date| date.to_string()) else { return Err(PriceError::NoDate(platform)) };
        if !date.parse::<Datetime>().is_ok_and(|day| day.date.is_some() && day.time.is_none()) {
            return Err(PriceError::BadDate { platform, date });
        }
        if covers.trim().is_empty() {
            return Err(PriceError::Covers(platform));
        }
        Ok(Price { platform, is_licence, amount, date, kind, covers })
    }

    fn once(&self) -> bool {
        self.kind == PriceKind::Once
    }
}

/// A price list whose amounts are of one currency and have a date.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    currency: String,
    /// Each platform's price before its licences.
    prices: Vec<Price>,
}

/// A platform with its price; `None` if the list has none.
struct Priced<'a> {
    side: &'a PlatformRun<'a>,
    total: Option<f64>,
    capacity_tb: Option<f64>,
}

impl Priced<'_> {
    fn per_tb(&self) -> Option<f64> {
        Some(self.total? / self.capacity_tb?)
    }
}

/// A workload on a platform with a price.
struct Line<'a> {
    priced: &'a Priced<'a>,
    sweep: &'a Sweep,
    currency: &'a str,
    basis: &'static str,
    /// Jobs or swept value of the peak, and the rate there as its column shows it.
    peak: Option<(u32, f64)>,
    /// Against the first platform: throughput, price, and throughput for the price.
    factors: Result<[f64; 3], String>,
}

impl Line<'_> {
    /// Throughput per 1,000 of the currency.
    fn per_1000(&self) -> Option<f64> {
        Some(self.peak?.1 / (self.priced.total? / 1000.0))
    }
}

impl Prices {
    /// Reads a price list.
    ///
    /// # Errors
    /// [`PriceError`] with the offending value.
    pub fn parse(text: &str) -> Result<Prices, PriceError> {
        let file: File = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|at| text.get(..at.start.min(text.len()))).unwrap_or_default();
            PriceError::Toml { line: before.matches('\n').count() + 1, message: e.message().to_owned() }
        })?;
        let currencies = distinct(file.price.iter().chain(&file.licence).map(|entry| entry.currency.clone()));
        let priced = |entries: Vec<Entry>, is_licence| {
            entries.into_iter().map(move |entry| Price::new(entry, is_licence)).collect::<Result<Vec<_>, _>>()
        };
        let (base, licences) = (priced(file.price, false)?, priced(file.licence, true)?);
        let currency = match currencies.as_slice() {
            [one] => one.clone(),
            [one, other, ..] => return Err(PriceError::Mixed(one.clone(), other.clone())),
            [] => return Err(PriceError::Empty),
        };
        let of = |platform: &str| base.iter().filter(|price| price.platform == platform).count();
        if let Some(twice) = base.iter().find(|price| of(&price.platform) > 1) {
            return Err(PriceError::Twice(twice.platform.clone()));
        }
        if let Some(alone) = licences.iter().find(|price| of(&price.platform) == 0) {
            return Err(PriceError::OnlyLicence(alone.platform.clone()));
        }
        let prices = base.into_iter().flat_map(|price| {
            let own: Vec<Price> = licences.iter().filter(|other| other.platform == price.platform).cloned().collect();
            std::iter::once(price).chain(own)
        });
        Ok(Prices { currency, prices: prices.collect() })
    }

    /// Refuses a list without a platform of `runs`.
    pub(crate) fn check(&self, runs: &[RunData]) -> Result<(), ReportError> {
        let parts = by_variant(runs);
        let sides = sides(parts.as_deref().unwrap_or(runs));
        if sides.iter().any(|side| self.of(side).next().is_some()) {
            return Ok(());
        }
        let named = |names: Vec<&str>| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        Err(ReportError::NoPrice {
            listed: named(distinct(self.prices.iter().map(|price| price.platform.as_str()))),
            platforms: named(sides.iter().map(|side| side.label.as_str()).collect()),
        })
    }

    /// The prices of `side`, by its name in the report or that of its run.
    fn of<'a>(&'a self, side: &'a PlatformRun<'_>) -> impl Iterator<Item = &'a Price> {
        let names = [side.label.as_str(), side.run.manifest.plan.platform.as_str()];
        self.prices.iter().filter(move |price| names.contains(&price.platform.as_str()))
    }

    fn are_by_hour(&self) -> bool {
        !self.prices.iter().any(Price::once)
    }

    /// `per hour` or `over three years`: what totals are of.
    fn basis(&self) -> &'static str {
        if self.are_by_hour() { "per hour" } else { "over three years" }
    }

    /// What a price adds to the total.
    fn share(&self, price: &Price) -> f64 {
        if price.once() || self.are_by_hour() { price.amount } else { price.amount * HOURS }
    }

    fn priced<'a>(&self, sides: &'a [PlatformRun<'a>]) -> Vec<Priced<'a>> {
        let one = |side: &'a PlatformRun<'a>| {
            let total: f64 = self.of(side).map(|price| self.share(price)).sum();
            Priced { side, total: (total > 0.0).then_some(total), capacity_tb: capacity_tb(&side.run.manifest) }
        };
        sides.iter().map(one).collect()
    }

    /// The workloads of all platforms, each platform's beside those of the others.
    fn lines<'a>(&'a self, priced: &'a [Priced<'a>], comparisons: &[Comparison]) -> Vec<Line<'a>> {
        let Some(first) = priced.first() else { return Vec::new() };
        let line = |priced: &'a Priced<'a>, sweep: &'a Sweep| Line {
            priced,
            sweep,
            currency: &self.currency,
            basis: self.basis(),
            peak: sweep.peak().and_then(|peak| Some((peak.at, sweep.rate_at(peak)?.mean * scale(sweep.rate)))),
            factors: factors([first, priced], sweep, comparisons),
        };
        let sides: Vec<PlatformRun<'_>> = priced.iter().map(|priced| priced.side.clone()).collect();
        let of = |code: String| {
            let all = priced.iter().flat_map(|priced| priced.side.sweeps.iter().map(move |sweep| (priced, sweep)));
            all.filter(move |(_, sweep)| sweep.workload == code)
                .map(|(priced, sweep)| line(priced, sweep))
                .collect::<Vec<_>>()
        };
        swept(&sides).into_iter().flat_map(of).collect()
    }

    /// The section: what each platform costs, and what it gives for that.
    pub(crate) fn section(&self, sides: &[PlatformRun<'_>], comparisons: &[Comparison]) -> Section {
        let priced = self.priced(sides);
        let lines = self.lines(&priced, comparisons);
        let blocks = [self.table(&priced), self.throughput(&lines)].into_iter().filter_map(Block::table);
        let names = distinct(self.prices.iter().map(|price| price.platform.as_str()));
        let known = |name: &&str| sides.iter().any(|side| self.of(side).any(|price| price.platform == *name));
        let context = context! {
            currency => self.currency,
            by_hour => self.are_by_hour(),
            several => sides.len() > 1,
            hours => number(HOURS, 0),
            without => priced.iter().filter(|of| of.total.is_none()).map(|of| &of.side.label).collect::<Vec<_>>(),
            others => names.into_iter().filter(|name| !known(name)).collect::<Vec<_>>(),
        };
        Section::of("prices", "Throughput for the price", Block::explained(blocks.collect(), &prose("prices", context)))
    }

    /// The prices of each platform, with their total.
    fn table(&self, priced: &[Priced<'_>]) -> Table {
        let rows = priced.iter().flat_map(|of| self.of(of.side).map(move |p| (of, Some(p))).chain([(of, None)]));
        let notes = Notes::default();
        let total = |of: &Priced<'_>, shown: &dyn Fn() -> Option<String>, why: &str| match of.total {
            None => Cell::absent(notes.mark("the price list has no [[price]] of it", &of.side.label)),
            Some(_) => shown().map_or_else(|| Cell::absent(notes.mark(why, &of.side.label)), Cell::from),
        };
        const NO_CAPACITY: &str = "no capacity is stated: run with --fact 'Flash capacity=25.6 TB', 'Disk capacity=…' or 'Persistent memory=…'";
        TableSpec::<(&Priced<'_>, Option<&Price>)>::of("facts", rows)
            .text("Platform", |(of, _)| &of.side.label)
            .once()
            .text("", |(_, price)| price.map_or("total", |p| if p.is_licence { "licence" } else { "price" }))
            .number("Amount", &self.currency, |(_, price)| price.map_or(String::new(), |p| money(p.amount)))
            .text("Paid", |(_, price)| price.map_or("", |p| if p.once() { "once" } else { "per hour" }))
            .text("On", |(_, price)| price.map_or("", |p| p.date.as_str()))
            .number(&title_case(self.basis()), &self.currency, |(of, price)| match price {
                Some(price) => Cell::from(money(self.share(price))),
                None => total(of, &|| of.total.map(money), ""),
            })
            .number("Capacity", "TB", |(of, price)| match price {
                Some(_) => Cell::default(),
                None => total(of, &|| of.capacity_tb.map(|tb| number(tb, 3)), NO_CAPACITY),
            })
            .number("Per TB", &self.currency, |(of, price)| match price {
                Some(_) => Cell::default(),
                None => total(of, &|| of.per_tb().map(money), NO_CAPACITY),
            })
            .text("Covers", |(_, price)| price.map_or("", |p| p.covers.as_str()))
            .notes(&notes)
            .caption("What the platforms cost")
            .build()
    }

    /// Throughput for the price of each workload.
    fn throughput(&self, lines: &[Line<'_>]) -> Table {
        let notes = Notes::default();
        let several = distinct(lines.iter().map(|line| line.priced.side.label.as_str())).len() > 1;
        let factor = |line: &Line<'_>, which: usize| match &line.factors {
            Ok(factors) => Cell::from(ratio(factors[which])),
            Err(why) => Cell::absent(notes.mark(why, &line.sweep.workload)),
        };
        let none = "the price list has no [[price]] of it";
        TableSpec::<&Line<'_>>::of("figures", lines)
            .text("Workload", |line| &line.sweep.workload)
            .once()
            .text("Platform", |line| &line.priced.side.label)
            .number("Peak", "", |line| {
                line.sweep.peak().and_then(|p| line.sweep.rate_at(p)).map(|e| value(line.sweep.rate, e.mean))
            })
            .text("", |line| unit(line.sweep.rate))
            .text("at", |line| line.peak.map_or(ABSENT.to_owned(), |(at, _)| place(&line.sweep.over, at)))
            .number(&format!("Per 1,000 {}", self.currency), self.basis(), |line| match line.per_1000() {
                Some(rate) => Cell::from(three_digits(rate)),
                None if line.priced.total.is_none() => Cell::absent(notes.mark(none, &line.priced.side.label)),
                None => Cell::absent(notes.mark("no valid test has a throughput", &line.sweep.workload)),
            })
            .number("Throughput", "×", |line| factor(line, 0))
            .when(several)
            .number("Price", "×", |line| factor(line, 1))
            .when(several)
            .number("Throughput for the price", "×", |line| factor(line, 2))
            .when(several)
            .notes(&notes)
            .caption("Throughput at the peak for the price")
            .build()
    }

    /// A row for each workload of each platform.
    pub(crate) fn listing(&self, runs: &[RunData], across_drivers: bool) -> Listing {
        let parts = by_variant(runs);
        let sides = sides(parts.as_deref().unwrap_or(runs));
        let across_drivers = across_drivers || sides.iter().any(|side| side.run.published.is_some());
        let priced = self.priced(&sides);
        let columns: [Named<Line<'_>>; 16] = [
            ("platform", |line| line.priced.side.label.as_str().into()),
            ("workload", |line| line.sweep.workload.as_str().into()),
            ("over", |line| line.sweep.over.as_str().into()),
            ("peak_at", |line| line.peak.map(|(at, _)| at).into()),
            ("peak_rate", |line| line.peak.map(|(_, rate)| rate).into()),
            ("rate_column", |line| line.sweep.rate.id.into()),
            ("currency", |line| line.currency.into()),
            ("basis", |line| line.basis.into()),
            ("total_price", |line| line.priced.total.into()),
            ("rate_per_1000", |line| line.per_1000().into()),
            ("capacity_tb", |line| line.priced.capacity_tb.into()),
            ("price_per_tb", |line| line.priced.per_tb().into()),
            ("throughput_factor", |line| line.factors.as_ref().ok().map(|factors| factors[0]).into()),
            ("price_factor", |line| line.factors.as_ref().ok().map(|factors| factors[1]).into()),
            ("throughput_for_price_factor", |line| line.factors.as_ref().ok().map(|factors| factors[2]).into()),
            ("why_no_factor", |line| line.factors.as_ref().err().map(String::as_str).into()),
        ];
        Listing::new(&columns, &self.lines(&priced, &comparisons(&sides, across_drivers)))
    }

    /// The list, and throughput for the price.
    pub(crate) fn json(&self, runs: &[RunData], across_drivers: bool) -> Value {
        json!({ "currency": self.currency, "prices": self.prices, "workloads": self.listing(runs, across_drivers).objects() })
    }
}

/// Factors of `of` against the base, as they are compared: only equal work is.
fn factors([base, of]: [&Priced<'_>; 2], sweep: &Sweep, comparisons: &[Comparison]) -> Result<[f64; 3], String> {
    let none = |priced: &Priced<'_>| format!("the price list has no [[price]] of '{}'", priced.side.label);
    let price = of.total.ok_or_else(|| none(of))? / base.total.ok_or_else(|| none(base))?;
    if base.side.label == of.side.label {
        return Ok([1.0; 3]);
    }
    let is_of = |c: &&Comparison| {
        let (workload, over) = (c.workload == sweep.workload, c.over == sweep.over);
        workload && over && c.other == of.side.label && c.nodes.is_none_or(|nodes| nodes == sweep.nodes)
    };
    let mut found = comparisons.iter().filter(is_of);
    let one = found.next().ok_or("this report has no comparison of it with the first platform")?;
    if found.next().is_some() {
        return Err("it is compared more than once: see the factors between platforms".to_owned());
    }
    let refused = |why: &Option<String>| why.clone().map_or(Ok(()), |why| Err(format!("not compared: {why}")));
    refused(&one.refused)?;
    let peak = one.peak().ok_or("the peaks are not compared")?;
    refused(&peak.refused)?;
    let rate: &Column = sweep.rate;
    let throughput = peak.factor(rate).ok_or("the peaks have no factor of throughput")?.factor.value;
    Ok([throughput, price, throughput / price])
}

/// Persistent memory, flash and disks as the user states them, TB (10¹² bytes). What the machine shows are the devices under one
/// database, and not what is paid.
fn capacity_tb(m: &Manifest) -> Option<f64> {
    let stated = CAPACITIES.iter().filter_map(|id| capacity_bytes(m.plan.facts.get(*id)?).ok());
    let bytes: f64 = stated.sum();
    (bytes > 0.0).then_some(bytes / 1e12)
}

/// An amount with cents if it is small.
fn money(amount: f64) -> String {
    number(amount, if amount < 1000.0 { 2 } else { 0 })
}

fn three_digits(n: f64) -> String {
    let decimals = match n.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 4,
    };
    number(n, decimals)
}

fn title_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: &str =
        "platform = 'a'\namount = 100\ncurrency = 'USD'\ndate = 2021-06-01\nkind = 'once'\ncovers = 'all'\n";

    fn list(entries: &[(&str, &str)]) -> Result<Prices, PriceError> {
        let entry = |(what, change): &(&str, &str)| {
            let (key, _) = change.split_once(' ').unwrap_or((change, ""));
            let kept: String =
                PRICE.lines().filter(|l| !l.starts_with(key) || key.is_empty()).map(|l| format!("{l}\n")).collect();
            format!("[[{what}]]\n{kept}{}\n", change)
        };
        Prices::parse(&entries.iter().map(entry).collect::<String>())
    }

    #[test]
    fn what_is_no_price_is_refused_and_named() {
        let no_date: String = PRICE.lines().filter(|l| !l.starts_with("date")).map(|l| format!("{l}\n")).collect();
        assert_eq!(Prices::parse(&format!("[[price]]\n{no_date}")), Err(PriceError::NoDate("a".to_owned())));
        assert_eq!(Prices::parse(""), Err(PriceError::Empty));
        let two = |change| list(&[("price", ""), ("price", change)]);
        assert_eq!(two(""), Err(PriceError::Twice("a".to_owned())));
        let other = format!("[[price]]\n{PRICE}[[licence]]\n{}", PRICE.replace("USD", "EUR"));
        assert_eq!(Prices::parse(&other), Err(PriceError::Mixed("USD".to_owned(), "EUR".to_owned())));
        assert_eq!(list(&[("price", ""), ("licence", "platform = 'b'")]), Err(PriceError::OnlyLicence("b".to_owned())));
        let bad = [
            ("amount = 0", "'a' is 0"),
            ("amount = -5", "-5"),
            ("amount = nan", "NaN"),
            ("currency = 'dollars'", "'dollars'"),
            ("date = '2021-02-30'", "'2021-02-30'"),
            ("date = '10:00:00'", "'10:00:00'"),
            ("kind = 'monthly'", "monthly"),
            ("covers = ' '", "covers"),
            ("tax = 1", "tax"),
        ];
        for (change, says) in bad {
            let e = list(&[("price", change)]).unwrap_err().to_string();
            assert!(e.contains(says), "{change}: {e}");
        }
        assert!(list(&[("prize", "")]).unwrap_err().to_string().contains("prize"));
    }

    #[test]
    fn totals_are_of_three_years_unless_all_prices_are_by_the_hour() {
        let total = |prices: &Prices| prices.prices.iter().map(|p| prices.share(p)).sum::<f64>();
        let hour = ("price", "kind = 'per-hour'");
        let by_hour = list(&[hour, ("licence", "kind = 'per-hour'")]).unwrap();
        assert_eq!((total(&by_hour), by_hour.basis()), (200.0, "per hour"));
        let both = list(&[hour, ("licence", "")]).unwrap();
        assert_eq!((total(&both), both.basis()), (100.0 * 26_280.0 + 100.0, "over three years"));
        assert!(both.prices[1].is_licence);
    }
}
