//! `loadline import`: results of other tools as runs of their own kind. What was read is written only once all of it was understood.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadline_exchange::{ImportedTest, Source, Tool, import as read};
use loadline_model::manifest::TargetInfo;
use loadline_model::{Imported, ImportedFile, Manifest};
use loadline_run::references::unmeasured;
use loadline_store::{RunFolder, TestOutput, rfc3339, run_name};
use sha2::{Digest as _, Sha256};

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::output;

pub(crate) fn import(args: &ImportArgs, command: Vec<String>) -> Result<u8, Failure> {
    let tool = args.tool;
    let mut runs = runs(tool, &args.files)?;
    if args.one_run {
        let tests = std::mem::take(&mut runs)
            .into_iter()
            .reduce(|all, next| Run { tests: [all.tests, next.tests].concat(), ..all });
        runs.extend(tests);
    }
    let mut written: Vec<PathBuf> = Vec::new();
    for run in runs {
        let title = args.title.clone().unwrap_or_else(|| format!("{tool} {}", run.name));
        if let Err(e) = write(run, &format!("{title} (imported)"), tool, args, &command, &mut written) {
            // Best effort: an import leaves all of its runs or none.
            written.iter().for_each(|path| drop(std::fs::remove_dir_all(path)));
            return Err(e);
        }
    }
    let paths: String = written.iter().map(|path| format!("{}\n", path.display())).collect();
    output::stdout(paths.as_bytes())?;
    Ok(0)
}

/// Tests of one run, each with its source.
#[derive(Clone)]
struct Run {
    /// Name of its first file.
    name: String,
    product: String,
    tests: Vec<(Imported, ImportedTest)>,
}

/// Reads all files, to their ends, so that their checksums are those of the files.
fn runs(tool: Tool, files: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let opened = files.iter().enumerate().map(|(n, file)| open(file, files.get(..n).unwrap_or_default()));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let mut sources: Vec<Source<'_>> = Vec::new();
    let mut sums: Vec<(String, Rc<RefCell<Sum>>)> = Vec::new();
    for (name, input) in opened {
        let sum = Rc::new(RefCell::new(Sum { hash: Sha256::new(), bytes: 0 }));
        let summed = Summed { input, sum: Rc::clone(&sum) };
        sources.push(Source { name: name.clone(), input: Box::new(BufReader::with_capacity(1 << 16, summed)) });
        sums.push((name, sum));
    }
    let groups = read(tool, &mut sources).map_err(|e| Failure::usage(e.to_string()))?;
    for source in &mut sources {
        let rest = io::copy(&mut source.input, &mut io::sink());
        rest.map_err(|e| Failure::usage(format!("{} cannot be read: {e}", source.name)))?;
    }
    let file = |n: &usize| {
        let (name, sum) = sums.get(*n)?;
        let sum = sum.borrow();
        let sha256 = sum.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(ImportedFile { name: name.clone(), bytes: sum.bytes, sha256 })
    };
    let runs = groups.into_iter().map(|group| {
        let files: Vec<ImportedFile> = group.files.iter().filter_map(file).collect();
        let name = files.first().map_or_else(String::new, |file| file.name.clone());
        let imported = Imported { tool: tool.name().to_owned(), version: group.version, files };
        let tests = group.tests.into_iter().map(|test| (imported.clone(), test)).collect();
        Run { name, product: group.product, tests }
    });
    Ok(runs.collect())
}

/// A file with its name; `before` are those named before it.
fn open(file: &Path, before: &[PathBuf]) -> Result<(String, Box<dyn Read>), Failure> {
    let shown = file.display();
    let same = |other: &PathBuf| other == file || same_file(other, file);
    if before.iter().any(same) {
        return Err(Failure::usage(format!("{shown} is named twice")));
    }
    if file == Path::new("-") {
        return Ok(("-".to_owned(), Box::new(io::stdin())));
    }
    if file.is_dir() {
        return Err(Failure::usage(format!("{shown} is a folder: name the files that the tool wrote")));
    }
    let opened = File::open(file).map_err(|e| Failure::usage(format!("{shown} cannot be read: {e}")))?;
    let name = file.file_name().map_or_else(|| shown.to_string(), |name| name.to_string_lossy().into_owned());
    let name = name.chars().filter(|c| !c.is_control()).collect();
    Ok((name, Box::new(opened)))
}

fn same_file(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).ok().zip(std::fs::canonicalize(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Checksum and length of what was read.
struct Sum {
    hash: Sha256,
    bytes: u64,
}

struct Summed {
    input: Box<dyn Read>,
    sum: Rc<RefCell<Sum>>,
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        let mut sum = self.sum.borrow_mut();
        sum.hash.update(buffer.get(..n).unwrap_or_default());
        sum.bytes += n as u64;
        Ok(n)
    }
}

fn write(
    run: Run,
    platform: &str,
    tool: Tool,
    args: &ImportArgs,
    command: &[String],
    written: &mut Vec<PathBuf>,
) -> Result<(), Failure> {
    let now = SystemTime::now();
    let kind = tool.name().to_lowercase();
    let mut folder = RunFolder::create(&args.results, &run_name(now, &kind))?;
    written.push(folder.path().to_owned());
    let (mut outputs, mut warnings): (Vec<TestOutput>, Vec<_>) = Default::default();
    for (imported, test) in run.tests {
        let mut record = test.record;
        record.platform = platform.to_owned();
        record.run = folder.id();
        record.target = format!("imported:{kind}");
        record.imported = Some(imported);
        record.test = u32::try_from(outputs.len() + 1).unwrap_or(u32::MAX);
        warnings.extend(test.warnings.iter().map(|warning| (record.test, warning.to_string())));
        let alike = outputs.iter().filter(|other| {
            let other = &other.record;
            (&other.workload, other.jobs, &other.parameters) == (&record.workload, record.jobs, &record.parameters)
        });
        record.repetition = u32::try_from(alike.count() + 1).unwrap_or(u32::MAX);
        match test.started_s.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
            Some(since) => record.started_at = rfc3339(UNIX_EPOCH + since),
            None => record.notes.push("no file states when the test began".to_owned()),
        }
        let native = None;
        let (series, histograms) = (test.series, test.histograms);
        outputs.push(TestOutput { record, series, histograms, snapshots: Vec::new(), activity: None, native });
    }
    let records: Vec<_> = outputs.iter().map(|output| output.record.clone()).collect();
    let target = TargetInfo { kind, product: run.product, ..TargetInfo::default() };
    let manifest = unmeasured(platform, target, &records).map_err(|e| Failure::failed(e.to_string()))?;
    let first = records.iter().map(|r| &r.started_at).filter(|at| !at.is_empty()).min();
    for output in &outputs {
        folder.append(output)?;
    }
    // Last: without it the folder is no run, whatever ends this process before.
    folder.write_manifest(&Manifest {
        run: folder.id(),
        loadline_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: first.cloned().unwrap_or_else(|| rfc3339(now)),
        command: command.to_vec(),
        ..manifest
    })?;
    for (test, warning) in warnings {
        output::say(&format!("warning: test {test}: {warning}"));
    }
    if let Some(imported) = records.first().and_then(|r| r.imported.as_ref()) {
        let tests = if records.len() == 1 { "1 test".to_owned() } else { format!("{} tests", records.len()) };
        output::say(&format!("{tests} {}", imported.unchecked()));
    }
    Ok(())
}
