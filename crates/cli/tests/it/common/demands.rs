//! Runs and what must hold of their tests, as tables (`data/demands`). A demand is an expression of minijinja, such as
//! `0 < tx_per_s <= 1000`, in which the figures of a test stand by their ids.

use std::cell::Cell;
use std::collections::BTreeMap;

use loadline_analyze::bound;
use loadline_store::StoredRun;
use minijinja::{Environment, Error, UndefinedBehavior, Value as Said, context};
use serde::Deserialize;

use super::*;

/// A table: runs, and demands on the tests of all of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Demands {
    run: Vec<Measured>,
    #[serde(default)]
    each: Vec<Demand>,
}

/// A run on each of some targets.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Measured {
    on: Vec<String>,
    /// The command, if it is not `run`.
    command: Option<String>,
    /// Lines for a shell that come before, each of which must succeed.
    before: Vec<String>,
    /// It sees no process of the server, as on another machine.
    far: bool,
    /// A word with blanks is within single quotes.
    line: String,
    /// Files of the folder `{files}`, and their texts.
    files: BTreeMap<String, String>,
    /// Folder of the results, if another than on a disk.
    within: Option<String>,
    /// Tests may be refused, and the run may end in any way: what must hold of that stands in the demands.
    unjudged: bool,
    interrupted: Option<Interrupted>,
    /// Demands on an interrupted run after it went on; its manifest is `before`.
    resumed: Vec<String>,
    /// Demands on the run: `tests`, `manifest`, `code`, `out` and `err` are its parts, `report(OPTIONS)` and
    /// `file(NAME)` texts, and `rows(LINE)` those of a command that prints CSV.
    holds: Vec<String>,
    each: Vec<Demand>,
}

/// A run is interrupted once this file of its folder has the text so many times.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Interrupted {
    file: String,
    text: String,
    times: usize,
}

/// Demands on each test of which `when` holds, of which there must be one; or on each element of a list `of` it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Demand {
    when: Option<String>,
    of: Option<String>,
    /// Names of expressions.
    with: BTreeMap<String, String>,
    passed: Vec<String>,
    holds: Vec<String>,
    #[serde(skip)]
    met: Cell<bool>,
}

fn value(env: &Environment<'_>, expression: &str, scope: &Said) -> Result<Said, Error> {
    env.compile_expression_owned(expression.to_owned())?.eval(scope)
}

/// Why an expression does not hold.
fn why_not(env: &Environment<'_>, expression: &str, scope: &Said) -> Option<String> {
    match value(env, expression, scope) {
        Ok(holds) if holds == Said::from(true) => None,
        Ok(other) => Some(format!("{expression}: {other}")),
        Err(e) => Some(format!("{expression}: {e}")),
    }
}

impl Demand {
    fn wrong(&self, env: &Environment<'_>, test: &Said) -> Vec<String> {
        if self.when.as_ref().is_some_and(|when| why_not(env, when, test).is_some()) {
            return Vec::new();
        }
        self.met.set(true);
        let named = |(name, of): (&String, &String)| {
            (name.clone(), value(env, of, test).unwrap_or_else(|e| Said::from(e.to_string())))
        };
        let scope = context! { ..self.with.iter().map(named).collect::<Said>(), ..test.clone() };
        let mut scopes = vec![scope.clone()];
        if let Some(of) = &self.of {
            let all: Vec<Said> = value(env, of, &scope).and_then(|all| all.try_iter()).into_iter().flatten().collect();
            let before = std::iter::once(Said::from(())).chain(all.iter().cloned());
            let element = |(of, previous): (&Said, Said)| context! { test => scope, previous, ..of.clone() };
            scopes = all.iter().zip(before).map(element).collect();
        }
        let passed = self.passed.iter().map(|id| format!("checks['{id}'] == 'passed'"));
        let all: Vec<String> = passed.chain(self.holds.iter().cloned()).collect();
        let none = scopes.is_empty().then(|| format!("{:?} has no element", self.of));
        let broken = scopes.iter().flat_map(|scope| all.iter().filter_map(|of| why_not(env, of, scope)));
        none.into_iter().chain(broken).collect()
    }
}

/// The record of a test, with outcomes and details of its checks by id, its notes by name, and what bounds it.
fn scope(test: &Value, bounded_by: Option<&str>) -> Said {
    let by = |list: &str, key: &str, value: fn(&Value) -> &Value| {
        let named = |of: &Value| Some((of[key].as_str()?.to_owned(), value(of).clone()));
        test[list].as_array().unwrap().iter().filter_map(named).collect::<BTreeMap<String, Value>>()
    };
    let record: BTreeMap<_, _> = test.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()).collect();
    context! {
        checks => by("checks", "id", |check| &check["outcome"]),
        details => by("checks", "id", |check| &check["detail"]),
        noted => by("notes", "note", |note| note),
        sound => sound(test),
        refused => refused(test),
        bounded_by,
        ..Said::from_serialize(record)
    }
}

fn environment(folder: &Path) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let [reported, there, run] = [(); 3].map(|()| folder.to_owned());
    // Lines of prose are wrapped.
    env.add_function("report", move |more: String| words(&report(&reported, &more)).join(" "));
    env.add_function("file", move |name: String| read(there.join(name)));
    env.add_function("rows", move |line: String| {
        Said::from_serialize(rows_of(&printed(&line.replace("{run}", &run.display().to_string()))))
    });
    env.add_function("numbers", |text: String| {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect::<Vec<u64>>()
    });
    env.add_function("limits_of", |code: String| {
        let listed = &loadline_workload::find(&code).unwrap().limits;
        listed.iter().map(|limit| vec![Said::from(limit.name()), limit.is_in_series().into()]).collect::<Vec<_>>()
    });
    env
}

impl Measured {
    /// Makes the run; what does not hold of it.
    fn wrong(&self, on_target: &str, of_all: &[Demand]) -> Vec<String> {
        self.before.iter().for_each(|line| done(Command::new("sh").args(["-c", line])));
        let within = self.within.as_deref().unwrap_or("/var/tmp");
        let dir = tempfile::Builder::new().prefix("loadline-test-").tempdir_in(within).unwrap();
        let measure = self.command.as_deref().unwrap_or("run");
        let files = tempfile::tempdir().unwrap();
        self.files.iter().for_each(|(name, text)| std::fs::write(files.path().join(name), text).unwrap());
        let line = self.line.replace("{files}", files.path().to_str().unwrap());
        let whole = format!("{measure} --target {on_target} --results {} {line}", dir.path().display());
        let ran = match &self.interrupted {
            Some(Interrupted { file, text, times }) => {
                let child = start(&quoted(&whole));
                folder_with(dir.path(), file, |is| is.matches(text).count() >= *times);
                signal(&child, Signal::SIGINT);
                ended(child)
            }
            None if self.far => far(&quoted(&whole)),
            None => run(&quoted(&whole)),
        };
        let folder = PathBuf::from(ran.out.lines().last().unwrap_or_default());
        let made = std::fs::read_dir(dir.path()).unwrap().count();
        let tests = if self.unjudged { tests_of(&folder) } else { sound_tests(&ran) };
        let mut bounds = Vec::new();
        if !self.unjudged {
            as_on_a_quiet_machine(&folder);
            bounds.extend(
                StoredRun::open(&folder).unwrap().records.iter().map(|r| bound(r).map(|bound| bound.by.name())),
            );
        }
        let bounds = bounds.into_iter().chain(std::iter::repeat(None));
        let tests: Vec<Said> = tests.iter().zip(bounds).map(|(test, by)| scope(test, by)).collect();
        let cpus = std::thread::available_parallelism().unwrap().get();
        let known = |Ran { code, out, err, .. }: &Ran| {
            let manifest = folder.join("manifest.json").exists().then(|| manifest_of(&folder));
            context! { on => on_target, line, cpus, code, out, err, manifest }
        };
        let whole = context! { tests, ..known(&ran) };
        let env = environment(&folder);
        let mut wrong: Vec<String> = self.holds.iter().filter_map(|of| why_not(&env, of, &whole)).collect();
        for test in &tests {
            let all = context! { ..test.clone(), ..whole.clone() };
            let broken: Vec<String> =
                self.each.iter().chain(of_all).flat_map(|demand| demand.wrong(&env, &all)).collect();
            wrong.extend((!broken.is_empty()).then(|| format!("{}: {test}", broken.join("\n"))));
        }
        if !self.resumed.is_empty() {
            let again = resumed(&folder, "");
            wrong.extend((again.code > 1).then(|| again.said()));
            let scope =
                context! { tests => tests_of(&folder), before => whole.get_attr("manifest").ok(), ..known(&again) };
            wrong.extend(self.resumed.iter().filter_map(|of| why_not(&env, of, &scope)));
        }
        let left = leftovers(dir.path());
        wrong.extend((!left.is_empty()).then(|| format!("left behind: {left:?}")));
        wrong.extend((ran.out.is_empty() && made > 0).then(|| "a run was begun and is not named".to_owned()));
        let secret = Command::new("grep").args(["-rlE", &PASSWORDS.join("|")]).arg(dir.path()).output().unwrap().stdout;
        let is_said = PASSWORDS.iter().any(|password| ran.said().contains(password));
        let is_told = is_said || !secret.is_empty();
        wrong.extend(is_told.then(|| format!("a password is said, or in {}", String::from_utf8_lossy(&secret))));
        if wrong.is_empty() { wrong } else { vec![format!("{on_target} {line}\n{}\n{}", wrong.join("\n"), ran.said())] }
    }
}

/// Makes the runs of a table, each so many `times`, and demands what must hold of them; each may miss it `missed` times. `names` are what
/// `{name}` stands for.
pub(crate) fn hold_runs_often(table: &str, names: &[(&str, &str)], times: usize, missed: usize) {
    let table: Demands = toml::from_str(&filled(table, names)).unwrap();
    let mut wrong = Vec::new();
    for run in &table.run {
        for target in run.on.iter().filter(|on| cfg!(feature = "servers") || !on.contains("-temp:")) {
            let all: Vec<String> = (0..times).flat_map(|_| run.wrong(target, &table.each)).collect();
            wrong.extend((all.len() > missed).then(|| all.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let mut all = table.run.iter().flat_map(|run| &run.each).chain(&table.each);
    let idle = all.find(|demand| cfg!(feature = "servers") && !demand.met.get());
    assert!(idle.is_none(), "no test is one of which {:?}", idle.map(|demand| &demand.when));
}

pub(crate) fn hold_runs(table: &str, names: &[(&str, &str)]) {
    hold_runs_often(table, &[&[("{data}", DATA), ("{example}", EXAMPLE)][..], names].concat(), 1, 0);
}
