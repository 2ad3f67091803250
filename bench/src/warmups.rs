//! Real warm-ups of PostgreSQL after a restart, with empty caches: when would each method have opened the window, and how far
//! would a window of 10 s have been from the plateau?

use std::path::PathBuf;
use std::sync::Arc;

use loadline_analyze::stats::mean;
use loadline_analyze::steady::STEP_S;
use loadline_collect::page_cache::DataFiles;
use loadline_database::Work;
use loadline_load::{Request, Warmup, run_test};

use crate::arena::{Outcome, target};
use crate::statistics::steady::{METHODS, opens};

#[derive(Debug, clap::Parser)]
pub(crate) struct Args {
    /// Restarts with each cache
    #[arg(long, default_value_t = 3)]
    restarts: u64,
    /// Time under load after each, s
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Workloads that read the data set
    #[arg(long, value_delimiter = ',', default_value = "STO-READ")]
    workload: Vec<String>,
    /// Size of the data set, MiB
    #[arg(long, default_value_t = 512)]
    mib: u64,
    /// Jobs
    #[arg(long, default_value_t = 4)]
    jobs: u32,
    /// Folder for the private server
    #[arg(long, default_value = "loadline-results")]
    results: PathBuf,
    /// File for all values, a line per warm-up
    #[arg(long)]
    values: Option<PathBuf>,
}

/// Values of the window, and of the plateau at the end.
const WINDOW: usize = 100;
const PLATEAU: usize = 200;

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let server = target("postgres-temp:", &args.results)?;
    let directory = server.info()?.data_dir.ok_or("no data directory")?;
    let files = DataFiles::Below { directory: directory.into(), except: None };
    println!(
        "| workload | shared_buffers, MiB | first 5 s, of the plateau |{}",
        METHODS.map(|(name, _)| format!(" {name} |")).concat()
    );
    println!("| --- | --- | --- |{}", " --- |".repeat(METHODS.len()));
    let mut all = String::new();
    for code in &args.workload {
        let work = Arc::new(Work::of(code, &[])?.with_size(args.mib << 20));
        server.create(&work)?;
        server.load(&work, args.jobs)?;
        for mib in [args.mib / 8, args.mib + args.mib / 4] {
            for n in 0..args.restarts {
                // Another size each time: then the server is restarted.
                let cache = server.abilities().block_cache.ok_or("no cache to set")?;
                let bytes = cache.set_cache(Some((6 * (mib + n % 2)) << 20))?.unwrap_or_default();
                server.settle()?;
                files.drop_all()?;
                let never = Warmup::UntilSteady { most_s: args.seconds, steady: |_| false };
                let request = Request { warmup: never, ..Request::of(&server, &work, args.jobs) };
                let rates = run_test(&request, &mut (), |_| ())?.warmup.load.rates;
                println!("| {code} | {} |{}", bytes >> 20, row(&rates));
                all += &format!("{code} {} {rates:.0?}\n", bytes >> 20);
            }
        }
        server.drop_tables(&work)?;
    }
    if let Some(path) = &args.values {
        std::fs::write(path, all)?;
    }
    Ok(())
}

/// What each method would have done.
fn row(rates: &[f64]) -> String {
    let of = |values: Option<&[f64]>| values.and_then(mean).unwrap_or(f64::NAN);
    let plateau = of(rates.get(rates.len().saturating_sub(PLATEAU)..));
    let cell = |(_, method): (&str, _)| match opens(method, rates) {
        None => " never |".to_owned(),
        Some(n) => {
            let off = of(rates.get(n..(n + WINDOW).min(rates.len()))) / plateau - 1.0;
            format!(" {:.1} s, {:+.0} % |", n as f64 * STEP_S, 100.0 * off)
        }
    };
    format!(" {:.0} % |{}", 100.0 * of(rates.get(..50)) / plateau, METHODS.map(cell).concat())
}
