//! loadline as a library: its crates under one name, for programs that make runs or use stored ones. The program itself is
//! `main.rs`.
//!
//! | to | begin with |
//! | --- | --- |
//! | measure | [`run::PlanSpec`], which becomes a plan, and [`run::Study`], which runs it |
//! | read a run folder | [`store::StoredRun`] and [`model::TestRecord`] |
//! | judge figures | [`analyze`]: [`analyze::sweeps`], [`analyze::compare()`], [`analyze::bound()`], [`analyze::audit`] |
//! | make a report | [`report::RunData`] and [`report::render`] |
//! | log in a program of your own | [`logwriter`], the reference log writer |
//!
//! The example makes a table of the two runs that loadline has with it. [`store::StoredRun::open`] reads one of yours.
//!
//! ```
//! use loadline_cli::report::{Format, Options, example, render};
//!
//! let runs = example()?;
//! let table = String::from_utf8(render(&runs, Format::Csv, &Options::default())?)?;
//! let tests: usize = runs.iter().map(|run| run.records.len()).sum();
//! assert_eq!(table.lines().count(), tests + 1, "a heading, and a line of each test");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "hub")]
pub use loadline_agents as agents;
pub use loadline_analyze as analyze;
pub use loadline_collect as collect;
pub use loadline_database as database;
pub use loadline_exchange as exchange;
pub use loadline_live as live;
pub use loadline_load as load;
pub use loadline_logwriter as logwriter;
pub use loadline_model as model;
pub use loadline_report as report;
pub use loadline_run as run;
pub use loadline_storage as storage;
pub use loadline_store as store;
pub use loadline_workload as workload;
