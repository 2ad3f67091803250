//! A page about every workload, from the registry: for `docs/workloads` and `loadline workloads CODE`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use loadline_database::{Rendered, TARGETS, TargetKind, Work};
use loadline_model::Column;
use loadline_model::Driver;
use loadline_model::format::Format;
use loadline_run::plan::Refusal;
use loadline_workload::{CATALOGUE, GROUPS, Instead, Instrument, NamedFor, Template, Workload};

use crate::drivers::{drivers, runs_with};
use crate::exit::Failure;
use crate::listing::cell;
use crate::output;

mod words;

/// The rendered SQL does not depend on the seed.
const SEED: u64 = 0;

/// First line of every page. It tells readers what to edit instead, and marks pages whose workload is gone for removal.
const MARK: &str =
    "<!-- Made by `loadline workloads --pages DIR` from the catalogue. Change the workload, not this page. -->";

/// Writes all pages and the index into `folder`, and removes the pages of workloads that no longer exist.
pub(crate) fn write(folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| Failure::failed(format!("{} cannot be written: {e}", path.display()));
    let mut pages = vec![("README.md".to_owned(), index())];
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
fn index() -> String {
    // Writing to a string cannot fail, here and below.
    let mut out = "# Workloads\n\nWhat loadline measures, one page each: what a transaction does, what its figures \
                   mean, what spoils them, and the SQL that each database gets.\n"
        .to_owned();
    for group in GROUPS {
        let own: Vec<&Arc<Workload>> = CATALOGUE.iter().filter(|w| w.group == group.code).collect();
        if own.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n## {} (`--group {}`)\n", group.title, group.code);
        out += "| workload | what it does | named for | KPIs |\n| --- | --- | --- | --- |\n";
        for w in &own {
            let kpis: Vec<String> = w.kpis.iter().map(|k| format!("{} [{}]", k.title, k.column.unit)).collect();
            let (what, kpis) = (cell(&w.summary), cell(&kpis.join(", ")));
            let _ = writeln!(out, "| [{0}]({0}.md) | {what} | {1} | {kpis} |", w.code, w.named_for.phrase());
        }
    }
    out += "\n## Where they run\n\nD: in the database, as a procedure that commits in its loop. C: at the client, as \
            prepared statements. `loadline run` takes the first; `--driver` selects the other. –: does not run; the \
            workload's page says why.\n\n| workload |";
    for kind in TARGETS {
        let _ = write!(out, " `{}:` |", kind.scheme);
    }
    let _ = writeln!(out, "\n| --- |{}", " --- |".repeat(TARGETS.len()));
    for w in CATALOGUE.iter() {
        let _ = write!(out, "| {} |", w.code);
        for kind in TARGETS {
            let letters: Vec<&str> = runs_with(w, kind).into_iter().map(letter).collect();
            let _ = write!(out, " {} |", if letters.is_empty() { "–".to_owned() } else { letters.join(" ") });
        }
        out.push('\n');
    }
    out.push('\n');
    for kind in TARGETS {
        let _ = writeln!(out, "- {}, {}: {}", schemes(kind), kind.product, kind.summary);
    }
    out
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
    let work = Work::new(Arc::clone(w), params, SEED, 0.0);
    let mut out = format!("# {}: {}\n\n{}\n\n", w.code, w.summary, w.description);
    let _ = writeln!(out, "Group: {} (`--group {}`)\n\nSpoiled by: {}", w.group().title, w.group, w.spoiled_by);
    out.push_str(&named_for(w));
    let _ = writeln!(out, "\n## A transaction\n\nWith the parameters at their defaults:\n\n{}", words::program(&work));
    let _ = writeln!(out, "{}\n\n## Data\n\n{}", words::load(w, &work), words::tables(&work));
    out.push_str(&figures(w));
    out.push_str(&limits(w));
    out.push_str(&parameters(w));
    out.push_str(&proof(w, &work));
    let _ = writeln!(out, "## Where it runs\n\nIt needs:\n");
    for need in &w.needs {
        let _ = writeln!(out, "- {}", need.phrase());
    }
    let families = families(w, &work);
    out += "\n| target | database driver | client driver |\n| --- | --- | --- |\n";
    let mut reasons = Vec::new();
    for family in &families {
        let cells: Vec<String> = family.drivers.iter().map(|(_, refused)| verdict(refused, &mut reasons)).collect();
        let target = format!("{}: {}", family.title(), family.summaries());
        let _ = writeln!(out, "| {} | {} |", cell(&target), cells.join(" | "));
    }
    out.push('\n');
    for (i, reason) in reasons.iter().enumerate() {
        let _ = writeln!(out, "{}. {}.", i + 1, capital(reason.trim_end_matches('.')));
    }
    let _ = writeln!(
        out,
        "{}If both drivers are possible, loadline takes the database driver. A server's settings may rule out more; \
         `loadline doctor --target URL` tells.\n\nThe SQL below is what each target gets in its newest version that loadline \
         knows, with default parameters.",
        if reasons.is_empty() { "" } else { "\n" }
    );
    for (i, family) in families.iter().enumerate() {
        out.push_str(&family.text(&families[..i]));
    }
    Ok(out)
}

/// What it is named for, and what bounds it where that does not.
fn named_for(w: &Workload) -> String {
    let NamedFor { doing, instead, .. } = &w.named_for;
    if w.named_for.components.is_empty() {
        return String::new();
    }
    let mut out = format!("\nNamed for: {}: {doing}. At its peak nothing else should bound it.", w.named_for.phrase());
    if !instead.is_empty() {
        out += " Where something else does:\n";
    }
    out.push('\n');
    for Instead { component, why } in instead {
        let _ = writeln!(out, "- {}: {why}", component.phrase());
    }
    out
}

fn figures(w: &Workload) -> String {
    let mut out = "## Figures\n\n| KPI | unit | column in files | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for kpi in &w.kpis {
        let c = kpi.column;
        let _ = writeln!(out, "| {} | {} | {} | {} |", cell(&kpi.title), c.unit, in_files(c), cell(c.meaning));
    }
    out + "\n"
}

/// What bounds a test on the machine, whatever the database.
fn limits(w: &Workload) -> String {
    let all = &w.limits;
    let mut out = "## Limit\n\n".to_owned();
    let of = match all.len() {
        0 => return out + "None: the figures are the shape of the curve over sizes.\n\n",
        1 => "it",
        _ => "the lowest of these, which `limit_of` names",
    };
    let _ = writeln!(
        out,
        "What the machine allows for the same work, measured directly before and after each test. `limit_share_pct` is \
         the test's throughput as a share of {of}:\n"
    );
    for limit in all {
        let _ = writeln!(out, "- {}: {}", limit.name(), limit.definition());
    }
    out + "\n"
}

fn in_files(c: &Column) -> String {
    match c.format {
        Format::NsAsMs => format!("`{}`, ns", c.id),
        _ => format!("`{}`", c.id),
    }
}

fn parameters(w: &Workload) -> String {
    if w.params.is_empty() {
        return "## Parameters\n\nNone.\n\n".to_owned();
    }
    let mut out = format!(
        "## Parameters\n\nIn a plan file under `[parameters.{}]`.\n\n| parameter | default | range | meaning |\n| --- | --- | \
         --- | --- |\n",
        w.code
    );
    for p in &w.params {
        let range = match p.choices.as_slice() {
            [] => format!("{} to {}", p.min, p.max),
            values => values.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(out, "| `{}` | {} | {range} | {} |", p.name, p.default, cell(&p.meaning));
    }
    out + "\n"
}

/// How a test proves that it did this work.
fn proof(w: &Workload, work: &Work) -> String {
    let mut out = String::new();
    if let Some(r) = w.redo {
        let kib = |b: f64| b / 1024.0;
        let what = if w.scan.is_some() { "A step" } else { "A transaction" };
        let rows = w.params.iter().any(|p| p.name == r.rows && p.default != 1);
        let rows =
            if rows { format!(" (on a log of whole pages, `{}`: the number of rows)", r.rows) } else { String::new() };
        let _ = writeln!(
            out,
            "Redo: {what} writes {:.1} to {:.1} KiB of redo; otherwise the test is refused. Before the first test loadline \
             measures the redo on the target and changes `{}`{rows} until it is {:.1} KiB, if the target's log allows \
             that. Each test prints its own redo.\n",
            kib(r.min),
            kib(r.max),
            r.payload,
            kib(r.nominal)
        );
    }
    if let Some(e) = &w.evidence {
        // Tests of the catalogue ensure that every query parses.
        let sql = Template::parse(&e.query).map_or(e.query.clone(), |t| t.render(str::to_owned, |v| format!(":{v}")));
        let _ = writeln!(
            out,
            "Evidence: `{sql}` before and after each test gives the number of {}; it must agree with what the jobs counted.\n",
            e.counts
        );
    }
    for c in &w.consistency {
        let sql = Template::parse(&c.query).map_or(c.query.clone(), |t| t.render(str::to_owned, |v| format!(":{v}")));
        let _ = writeln!(out, "Consistency: {}. `{sql}` must be 0 after each test.\n", c.what);
    }
    for c in &w.unchanged {
        let sql = Template::parse(&c.query).map_or(c.query.clone(), |t| t.render(str::to_owned, |v| format!(":{v}")));
        let _ = writeln!(out, "Consistency: {}. `{sql}` must be the same before and after each test.\n", c.what);
    }
    if w.has(Instrument::CacheHit) {
        out.push_str(
            "Cache: by the database's own counters, at least 99.9 % of block requests must be cache hits.\n\n",
        );
    }
    if w.has(Instrument::Device) {
        out.push_str(&from_the_device(work));
    }
    format!(
        "## How the work is proved\n\nCounts: each statement must touch exactly the number of rows given above. The \
         database's own count of commits must agree with that of the jobs, if it counts them.\n\n{out}"
    )
}

/// How a test proves that its reads and writes reached the storage device.
fn from_the_device(work: &Work) -> String {
    let (adds, changes) = (loadline_run::only_adds(work), work.program.rows_changed_per_tx() > 0);
    let mut out = String::new();
    if work.program.reads() {
        out += "Reads: at least 90 % of the blocks that transactions request must come from the storage device. The database's \
                counters show the hits in its own cache, the device's counters those in the operating system's.\n\n";
    }
    let owed = if adds {
        "at least 90 % of the new rows' bytes"
    } else {
        "blocks for at least half of the changed rows (each is in another block)"
    };
    if changes {
        let _ = writeln!(
            out,
            "Writes: the database must write {owed} to its data files within the window, and 90 % of what it writes there must \
             reach the device under them. If the log is on the same device, its bytes are subtracted first. A window that \
             is too short, so that more stays in caches, proves nothing.\n"
        );
    }
    out + "A test without this proof is refused; `--allow-cached` keeps it, marked.\n\n"
}

/// Targets that get the same SQL.
struct Family {
    kinds: Vec<&'static TargetKind>,
    drivers: Vec<(Driver, Option<Refusal>)>,
    pieces: Vec<Rendered>,
}

/// All targets, neighbours with the same SQL grouped.
fn families(w: &Workload, work: &Work) -> Vec<Family> {
    let mut out: Vec<Family> = Vec::new();
    for kind in TARGETS.iter().copied() {
        let family = Family { kinds: vec![kind], drivers: drivers(w, kind), pieces: (kind.render)(work) };
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
            if !products.iter().any(|p| p.contains(kind.product)) {
                products.push(kind.product);
            }
        }
        let urls: Vec<String> = self.kinds.iter().map(|k| format!("`{}:`", k.scheme)).collect();
        format!("{} ({})", capital(&products.join(", ")), urls.join(", "))
    }

    /// A phrase for each of its targets.
    fn summaries(&self) -> String {
        self.kinds.iter().map(|k| k.summary).collect::<Vec<_>>().join("; ")
    }

    /// Its part of a page; `earlier` families have theirs already.
    fn text(&self, earlier: &[Family]) -> String {
        let mut out = format!("\n## {}\n", self.title());
        let runs: Vec<Driver> = self.drivers.iter().filter(|(_, r)| r.is_none()).map(|(d, _)| *d).collect();
        if runs.is_empty() {
            return out + "\nIt does not run here; the reason is above.\n";
        }
        if let Some(same) = earlier.iter().find(|family| family.pieces == self.pieces) {
            let with = runs.iter().map(|d| format!("the {d} driver")).collect::<Vec<_>>().join(" and ");
            return out + &format!("\nThe same SQL as for {}, with {with}.\n", same.title());
        }
        for piece in &self.pieces {
            let of = piece.driver.and_then(|d| self.drivers.iter().find(|(driver, _)| *driver == d));
            let title = match of {
                Some((_, Some(refused))) if !refused.forceable => continue,
                Some((d, Some(_))) => format!("{} (not used, but for `--driver {d} --force`)", piece.title),
                Some((d, None)) if runs.len() > 1 => format!("{} ({d} driver)", piece.title),
                _ => piece.title.clone(),
            };
            let title = capital(&title);
            let _ = match (piece.in_words, piece.sql.trim_end()) {
                (true, words) if !words.contains('\n') => {
                    writeln!(out, "\n{title}: {}.", words.trim_start_matches("-- ").trim_end_matches('.'))
                }
                (true, words) => writeln!(out, "\n{title}:\n\n```text\n{words}\n```"),
                (false, sql) => writeln!(out, "\n{title}:\n\n```sql\n{sql}\n```"),
            };
        }
        out
    }
}

/// `yes`, or `no` with the number of the reason in `reasons`.
fn verdict(refused: &Option<Refusal>, reasons: &mut Vec<String>) -> String {
    let Some(refused) = refused else { return "yes".to_owned() };
    let at = reasons.iter().position(|r| *r == refused.reason).unwrap_or_else(|| {
        reasons.push(refused.reason.clone());
        reasons.len() - 1
    });
    format!("no, see {}", at + 1)
}

fn schemes(kind: &TargetKind) -> String {
    let all = std::iter::once(&kind.scheme).chain(kind.aliases);
    all.map(|s| format!("`{s}:`")).collect::<Vec<_>>().join(" or ")
}

/// `text` with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
