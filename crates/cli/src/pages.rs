//! A page about every workload, from the registry: for `docs/workloads` and `loadline workloads CODE`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loadline_database::{Rendered, TARGETS, TargetKind, Work};
use loadline_model::column::TABLES;
use loadline_model::format::Format;
use loadline_model::{Column, Driver};
use loadline_run::plan::{Refusal, refusal};
use loadline_workload::{CATALOGUE, Instrument, Template, Workload};
use minijinja::{Value, context};

use crate::exit::Failure;
use crate::output;
use crate::template::filled;

mod words;

/// Each driver, with the reason if the target cannot run the workload with it.
pub(crate) fn drivers(workload: &Workload, kind: &dyn TargetKind) -> Vec<(Driver, Option<Refusal>)> {
    Driver::ALL.iter().map(|d| (*d, refusal(workload, kind, *d))).collect()
}

/// The drivers with which the target runs the workload, preferred first.
pub(crate) fn runs_with(workload: &Workload, kind: &dyn TargetKind) -> Vec<Driver> {
    drivers(workload, kind).into_iter().filter(|(_, refused)| refused.is_none()).map(|(d, _)| d).collect()
}

/// The rendered SQL does not depend on the seed.
const SEED: u64 = 0;

/// First line of every page. It tells readers what to edit instead, and marks pages whose workload is gone for removal.
const MARK: &str =
    "<!-- Made by `loadline workloads --pages DIR` from the catalogue. Change the workload, not this page. -->";

/// Writes all pages and the index into `folder`, and removes the pages of workloads that no longer exist.
pub(crate) fn write(folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| Failure::failed(format!("{} cannot be written: {e}", path.display()));
    let mut pages = vec![("README.md".to_owned(), index()?)];
    for w in CATALOGUE.iter() {
        pages.push((format!("{}.md", w.code), page(w)?));
    }
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    for (name, text) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, format!("{MARK}\n{text}")).map_err(|e| failed(&path, e))?;
    }
    for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, e))? {
        let path = entry.map_err(|e| failed(folder, e))?.path();
        let is_page = path.file_name().is_some_and(|n| pages.iter().any(|(name, _)| n == name.as_str()));
        let made_here = || std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with(MARK));
        if !is_page && path.extension().is_some_and(|e| e == "md") && made_here() {
            std::fs::remove_file(&path).map_err(|e| failed(&path, e))?;
            output::say(&format!("removed {}: its workload no longer exists", path.display()));
        }
    }
    output::say(&format!("{} pages and README.md are in {}", CATALOGUE.len(), folder.display()));
    Ok(())
}

/// The table of all workloads.
fn index() -> Result<String, Failure> {
    let row = |w: &Arc<Workload>| {
        let kpis: Vec<String> = w.kpis.iter().map(|k| format!("{} [{}]", k.title, k.column.unit)).collect();
        (w.code.clone(), w.summary.clone(), w.named_for.phrase(), kpis.join(", "))
    };
    let groups = TABLES.iter().map(|table| {
        let own: Vec<_> = CATALOGUE.iter().filter(|w| w.group == table.group).map(row).collect();
        context! { title => table.title, code => table.group, workloads => own }
    });
    let letters = |w: &Workload, kind: &dyn TargetKind| {
        let all: Vec<&str> = runs_with(w, kind).into_iter().map(letter).collect();
        if all.is_empty() { "–".to_owned() } else { all.join(" ") }
    };
    let on_each =
        |w: &Arc<Workload>| (w.code.clone(), TARGETS.iter().map(|kind| letters(w, *kind)).collect::<Vec<_>>());
    let context = context! {
        groups => groups.filter(|group| group.get_attr("workloads").is_ok_and(|all| all.len() > Some(0))).collect::<Vec<_>>(),
        targets => TARGETS.iter().map(|kind| format!("`{}:`", kind.scheme())).collect::<Vec<_>>(),
        rule => " --- |".repeat(TARGETS.len()),
        workloads => CATALOGUE.iter().map(on_each).collect::<Vec<_>>(),
        kinds => TARGETS.iter().map(|kind| (schemes(*kind), &kind.product, &kind.summary)).collect::<Vec<_>>(),
    };
    filled(include_str!("pages/index.jinja"), context)
}

fn letter(driver: Driver) -> &'static str {
    match driver {
        Driver::Database => "D",
        Driver::Client => "C",
    }
}

/// All about one workload, as Markdown that reads well as plain text.
pub(crate) fn page(w: &Arc<Workload>) -> Result<String, Failure> {
    let params = w.params(&BTreeMap::new()).map_err(|e| Failure::failed(e.to_string()))?;
    let work = Work::new(Arc::clone(w), params, SEED, Default::default());
    let of_work = context! {
        code => w.code,
        summary => w.summary,
        description => w.description,
        group => context! { title => w.table().title, code => w.group },
        spoiled_by => w.spoiled_by,
        is_named => !w.named_for.components.is_empty(),
        named_for => w.named_for.phrase(),
        doing => w.named_for.doing,
        instead => w.named_for.instead.iter().map(|i| (i.component.phrase(), &i.why)).collect::<Vec<_>>(),
        program => words::program(&work),
        tables => words::tables(&work),
        kpis => w.kpis.iter().map(|k| (&k.title, k.column.unit, in_files(k.column), k.column.meaning)).collect::<Vec<_>>(),
        limits => w.limits.iter().map(|limit| (limit.name(), limit.definition())).collect::<Vec<_>>(),
        parameters => w.params,
        values => work.params.to_map(),
        sweep => w.sweep,
        workers => w.workers,
        scan => w.scan,
        needs => w.needs.iter().map(|need| need.phrase()).collect::<Vec<_>>(),
    };
    let families = families(w, &work);
    let mut reasons = Vec::new();
    let shown = families.iter().enumerate().map(|(i, family)| family.shown(&families[..i], &mut reasons));
    let shown: Vec<Value> = shown.collect();
    let context = context! { families => shown, reasons, ..proof(w, &work, of_work) };
    filled(include_str!("pages/page.jinja"), context)
}

fn in_files(c: &Column) -> String {
    match c.format {
        Format::NsAsMs => format!("`{}`, ns", c.id),
        _ => format!("`{}`", c.id),
    }
}

/// Adds to `page` how a test proves that it did this work.
fn proof(w: &Workload, work: &Work, page: Value) -> Value {
    // Tests of the catalogue ensure that every query parses.
    let sql = |query: &str| {
        let template = Template::parse(query);
        template.map_or_else(|_| query.to_owned(), |t| t.render(str::to_owned, |v| format!(":{v}")))
    };
    let kib = |bytes: f64| format!("{:.1}", bytes / 1024.0);
    let redo = w.redo.map(|r| {
        let rows = w.params.iter().any(|p| p.name == r.rows && p.default != 1).then_some(r.rows);
        context! { min => kib(r.min), nominal => kib(r.nominal), max => kib(r.max), payload => r.payload, rows }
    });
    let zero = w.consistency.iter().map(|c| (&c.what, sql(&c.query), "0 after"));
    let same = w.unchanged.iter().map(|c| (&c.what, sql(&c.query), "the same before and after"));
    let device = w.has(Instrument::Device).then(|| {
        let (reads, changes) = (work.program.reads(), work.program.rows_changed_per_tx() > 0);
        context! { reads, changes, adds => loadline_run::only_adds(work) }
    });
    context! {
        redo,
        evidence => w.evidence.as_ref().map(|e| (sql(&e.query), &e.counts)),
        consistency => zero.chain(same).collect::<Vec<_>>(),
        cached => w.has(Instrument::CacheHit),
        device,
        ..page
    }
}

/// Targets that get the same SQL.
struct Family {
    kinds: Vec<&'static dyn TargetKind>,
    drivers: Vec<(Driver, Option<Refusal>)>,
    pieces: Vec<Rendered>,
}

/// All targets, neighbours with the same SQL grouped.
fn families(w: &Workload, work: &Work) -> Vec<Family> {
    let mut out: Vec<Family> = Vec::new();
    for kind in TARGETS.iter().copied() {
        let family = Family { kinds: vec![kind], drivers: drivers(w, kind), pieces: kind.render(work) };
        match out.last_mut() {
            Some(last) if last.drivers == family.drivers && last.pieces == family.pieces => last.kinds.push(kind),
            _ => out.push(family),
        }
    }
    out
}

impl Family {
    /// `PostgreSQL (postgres:, postgres-temp:)`.
    fn title(&self) -> String {
        let mut products: Vec<&str> = Vec::new();
        for kind in &self.kinds {
            // "MariaDB/MySQL" covers "MariaDB".
            if !products.iter().any(|p| p.contains(&kind.product)) {
                products.push(&kind.product);
            }
        }
        let urls: Vec<String> = self.kinds.iter().map(|k| format!("`{}:`", k.scheme())).collect();
        format!("{} ({})", capital(&products.join(", ")), urls.join(", "))
    }

    /// A phrase for each of its targets.
    fn summaries(&self) -> String {
        self.kinds.iter().map(|k| k.summary.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Parts of a page; `earlier` families have theirs already. `reasons`: why drivers are refused.
    fn shown(&self, earlier: &[Family], reasons: &mut Vec<String>) -> Value {
        let verdicts: Vec<String> = self.drivers.iter().map(|(_, refused)| verdict(refused, reasons)).collect();
        let runs: Vec<Driver> = self.drivers.iter().filter(|(_, r)| r.is_none()).map(|(d, _)| *d).collect();
        let same = earlier.iter().find(|family| family.pieces == self.pieces).map(Family::title);
        context! {
            title => self.title(),
            summaries => self.summaries(),
            verdicts,
            drivers => runs.iter().map(|d| format!("the {d} driver")).collect::<Vec<_>>(),
            same,
            pieces => self.pieces.iter().filter_map(|piece| self.piece(piece, runs.len())).collect::<Vec<_>>(),
        }
    }

    /// Title, language and text of a piece; `None` if it cannot be used. A sentence has no language.
    fn piece<'a>(&self, piece: &'a Rendered, runs: usize) -> Option<(String, &'static str, &'a str)> {
        let own = piece.driver.and_then(|d| self.drivers.iter().find(|(driver, _)| *driver == d));
        let title = match own {
            Some((_, Some(refused))) if !refused.forceable => return None,
            Some((d, Some(_))) => format!("{} (not used, but for `--driver {d} --force`)", piece.title),
            Some((d, None)) if runs > 1 => format!("{} ({d} driver)", piece.title),
            _ => piece.title.clone(),
        };
        let (language, text) = match (piece.in_words, piece.sql.trim_end()) {
            (true, words) if !words.contains('\n') => ("", words.trim_start_matches("-- ").trim_end_matches('.')),
            (true, words) => ("text", words),
            (false, sql) => ("sql", sql),
        };
        Some((capital(&title), language, text))
    }
}

/// `yes`, or `no` with the number of the reason in `reasons`.
fn verdict(refused: &Option<Refusal>, reasons: &mut Vec<String>) -> String {
    let Some(refused) = refused else { return "yes".to_owned() };
    let reason = capital(refused.reason.trim_end_matches('.'));
    let at = reasons.iter().position(|r| *r == reason).unwrap_or_else(|| {
        reasons.push(reason.clone());
        reasons.len() - 1
    });
    format!("no, see {}", at + 1)
}

fn schemes(kind: &dyn TargetKind) -> String {
    let all = std::iter::once(kind.scheme()).chain(kind.aliases.iter().map(String::as_str));
    all.map(|s| format!("`{s}:`")).collect::<Vec<_>>().join(" or ")
}

/// `text` with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
