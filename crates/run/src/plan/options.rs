//! The options of a plan. Each is declared once, in the table below: its flag, its key in plan files, its help, its range and its
//! default follow. What it does not go with is in `refusals.rs`; what it becomes, in `plan.rs`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use loadline_model::format::{parse_bytes, parse_duration_s, share_of};
use loadline_model::plan::{
    AgentCredentials, DEFAULT_SIZE_BYTES, JobsSpec, OnNodeLoss, PopulationSpec, RateSpec, ShareSpec, TimeSpec,
};
use loadline_model::variant::VariantSpec;
use loadline_model::{Driver, Keys};
use serde::{Deserialize, Serialize};

use super::{DEFAULT_EQUIVALENCE, PlanError, value};

/// Makes of the table
///
/// - a struct of flags for each group, and [`RunOptions`] with the groups of `loadline run`;
/// - [`PlanSpec`] with the keys of all groups and those without a flag;
/// - for an option with a range, `where (LEAST, MOST)` or `= (DEFAULT, LEAST, MOST)`, a function of [`PlanSpec`] of its name that gives its value, or
///   refuses it.
///
/// After the name of a group stand other flags that its own do not go with. An option under a heading is shown by `--help-all` only.
macro_rules! options {
    (
        run { $($(#[$about_group:meta])* $field:ident: $group:ident $conflicts:tt $rows:tt)* }
        more { $($(#[$about_other:meta])* $other:ident $other_conflicts:tt $other_rows:tt)* }
        keys $keys:tt
    ) => {
        $(options! { @flags $(#[$about_group])* $group $conflicts $rows })*
        $(options! { @flags $(#[$about_other])* $other $other_conflicts $other_rows })*

        /// The flags of a plan that every command has which measures.
        #[derive(Debug, Clone, Default, Args)]
        pub struct RunOptions { $($(#[$about_group])* #[command(flatten)] pub $field: $group,)* }

        impl RunOptions {
            /// The specification that the flags give.
            pub fn spec(&self) -> PlanSpec {
                let mut spec = PlanSpec::default();
                $(self.$field.set(&mut spec);)*
                spec
            }
        }

        options! { @spec $($rows)* $($other_rows)* $keys }
    };
    (@flags $(#[$about_group:meta])* $group:ident $conflicts:tt {
        $($(#[$about:meta])* $key:ident: $type:ty $([$($flag:tt)*])? $(= ($default:expr, $least:expr, $most:expr))? $(where ($only:expr, $bound:expr))?;)*
    }) => {
        $(#[$about_group])*
        #[derive(Debug, Clone, Default, Args)]
        pub struct $group { $($(#[$about])* #[arg(long, conflicts_with_all = $conflicts, $($($flag)*)?)] pub $key: Option<$type>,)* }

        impl $group {
            /// Sets the keys of the flags that are given.
            pub fn set(&self, spec: &mut PlanSpec) {
                $(if self.$key.is_some() { spec.$key.clone_from(&self.$key); })*
            }
        }
    };
    (@spec $({
        $($(#[$about:meta])* $key:ident: $type:ty $([$($flag:tt)*])? $(= ($default:expr, $least:expr, $most:expr))? $(where ($only:expr, $bound:expr))?;)*
    })*) => {
        /// A plan as a user states it, in a TOML file or by flags; what is `None` takes its default.
        /// Flags override the file key by key (see [`PlanSpec::overridden_by`]).
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct PlanSpec {
            $($($(#[$about])* pub $key: Option<$type>,)*)*
            /// Workload files of a plan file if flags select the workloads: they can be named in `workload` and
            /// `parameters`, but do not run by themselves.
            #[serde(skip)]
            pub known_workload_file: Option<Vec<String>>,
        }

        impl PlanSpec {
            /// The keys of a plan file.
            pub fn keys() -> Vec<String> {
                [$($(stringify!($key),)*)*].map(|key| key.replace('_', "-")).to_vec()
            }

            /// The keys that say something.
            pub fn given(&self) -> Vec<String> {
                let keys = [$($((stringify!($key), self.$key.is_some()),)*)*];
                keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key.replace('_', "-")).collect()
            }

            /// This specification with every key that `other` sets taken from `other`.
            #[must_use]
            pub fn overridden_by(self, other: PlanSpec) -> PlanSpec {
                let known_workload_file = other.known_workload_file.or(self.known_workload_file);
                PlanSpec { $($($key: other.$key.or(self.$key),)*)* known_workload_file }
            }

            $($(
                $(
                    /// The value of the key, or its default.
                    pub fn $key(&self) -> Result<<$type as Ranged>::Value, PlanError> {
                        self.$key.as_ref().map_or(Ok($default), |given| in_range(stringify!($key), given, [$least, $most]))
                    }
                )?
                $(
                    /// The value of the key, if it is given.
                    pub fn $key(&self) -> Result<Option<<$type as Ranged>::Value>, PlanError> {
                        self.$key.as_ref().map(|given| in_range(stringify!($key), given, [$only, $bound])).transpose()
                    }
                )?
            )*)*
        }
    };
}

/// Heading of what `--help-all` adds, as those below.
pub const CLUSTER: &str = "Clusters and agents";
const WORKLOADS: &str = "Workloads of your own";
const LOAD: &str = "Load";
const DATA: &str = "Data";
/// Heading of what figures must show.
pub const PROOF: &str = "Figures and proofs";

options! {
    run {
        /// Options that an interrupted run may be given again or anew.
        resumable: ResumableOptions [""; 0] {
            /// Number of agents over which the jobs are spread (see docs/agents.md) [default: that of the plan, else none: loadline itself
            /// runs the jobs]
            agents: u32 [value_name = "N", value_parser = whole::<u32>, help_heading = CLUSTER] where ("1", "10000");
            /// Folder that holds the runs [default: loadline-results]
            results: String [value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = NonEmptyStringValueParser::new()];
            /// Measure although a capability is missing or the doctor refuses; such tests are marked
            force: bool [num_args = 0, default_missing_value = "true"];
        }
        /// Options that a resumed run has from its plan.
        plan: PlannedOptions ["resume"] {
            // Agents and nodes.
            /// Where agents have the target's password from [default: that of the plan, else send]
            agent_credentials: AgentCredentials
                [value_parser = one_of(AgentCredentials::ALL.map(|v| (v.name(), v.about(), v))), help_heading = CLUSTER];
            /// Numbers of nodes over which each workload is measured, e.g. 1,2,3; jobs are spread over the first of them in turn
            /// [default: all nodes]
            nodes: Vec<u32> [value_name = "LIST", value_delimiter = ',', value_parser = whole::<u32>, help_heading = CLUSTER];
            /// When a node is lost in a test, which makes that test refused: end the run, or continue over the nodes that are left
            /// [default: that of the plan, else end]
            on_node_loss: OnNodeLoss
                [value_parser = one_of(OnNodeLoss::ALL.map(|v| (v.name(), v.about(), v))), help_heading = CLUSTER];
            // Choice of workloads.
            /// Workload, e.g. LGWR-LAT1; repeatable, or separated by commas [default: those of the plan]
            workload: Vec<String> [value_name = "CODE", value_delimiter = ','];
            /// All workloads of a group, e.g. log-writer
            group: Vec<String> [value_name = "GROUP", value_delimiter = ','];
            /// Workload of your own (TOML, see docs/user-workloads.md); repeatable. Without --workload and --group, nothing else runs
            workload_file: Vec<String>
                [value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new(), help_heading = WORKLOADS];
            /// pgbench script to run on the tables that are there, or builtin:NAME (tpcb-like, simple-update, select-only), with its weight
            /// [default: 1]; repeatable. Nothing else runs, and nothing is created, loaded or dropped (see docs/pgbench-scripts.md)
            pgbench_script: Vec<String> [value_name = "FILE[@WEIGHT]", help_heading = WORKLOADS];
            /// Variable of the pgbench scripts, e.g. scale=10; repeatable
            define: Vec<String> [value_name = "NAME=VALUE", help_heading = WORKLOADS];
            /// Let pgbench scripts write [default: their sessions only read]
            allow_writes: bool [num_args = 0, default_missing_value = "true", help_heading = WORKLOADS];
            /// Query on your tables whose result grows by 1 with each execution of a pgbench script, e.g. 'SELECT count(*) FROM orders'; a
            /// test is refused if it does not
            evidence: String [value_name = "SQL", help_heading = WORKLOADS];
            // How it is loaded.
            /// Job counts, e.g. 1,2,4,8, or auto: rise from 1 until throughput no longer grows [default: that of the plan, else auto]
            jobs: JobsSpec [value_name = "LIST|auto", allow_hyphen_values = true, value_parser = jobs];
            /// Length of the measured window of each test, e.g. 30s or 5m (without a unit: s) [default: that of the plan, else 4s]
            duration: TimeSpec [value_name = "TIME", allow_hyphen_values = true] = (4.0, "0.2 s", "24 h");
            /// Time under load before the window starts, e.g. 500ms or 10s (without a unit: s), or auto: until throughput is steady,
            /// 7 s or more [default: that of the plan, else 1s]
            warmup: TimeSpec [value_name = "TIME|auto", allow_hyphen_values = true] = (1.0, "0.2 s", "1 h");
            /// With --warmup auto, the longest warm-up; a test that is not steady by then is marked [default: that of the plan, else 60s]
            max_warmup: TimeSpec [value_name = "TIME", allow_hyphen_values = true, help_heading = LOAD]
                = (60.0, "0.2 s", "1 h");
            /// Number of times that everything is measured, interleaved; from 2 on, figures have confidence intervals [default: that
            /// of the plan, else 1]
            repeat: u32 [value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>] = (1, "1", "1000");
            /// Where the load is generated [default: that of the plan, else database where the target can, else client]
            driver: Driver [value_parser = driver()];
            /// Open loop: transactions started per second over all jobs, whether or not earlier ones have ended, or auto: the highest rate
            /// that meets --p99, --p95 or --latency, found with 16 looks (see docs/load.md)
            rate: RateSpec [value_name = "TPS|auto", allow_hyphen_values = true, value_parser = rate, help_heading = LOAD];
            /// With --rate auto, the longest 99th percentile of the response times, with its unit, e.g. 5ms
            p99: TimeSpec [value_name = "TIME", allow_hyphen_values = true, help_heading = LOAD];
            /// With --rate auto, the longest 95th percentile of the response times
            p95: TimeSpec [value_name = "TIME", allow_hyphen_values = true, help_heading = LOAD];
            /// With --rate auto, the longest mean response time
            latency: TimeSpec [value_name = "TIME", allow_hyphen_values = true, help_heading = LOAD];
            /// Mean time that a job thinks after each transaction, with its unit, e.g. 10ms; drawn from an exponential distribution. Client
            /// driver only, and not with --rate (see docs/load.md)
            think: TimeSpec [value_name = "TIME", allow_hyphen_values = true, help_heading = LOAD];
            /// Scan commit time over these times between the last change and the commit instead of over sizes (LGWR-SIZE), e.g.
            /// 0,100ms,500ms,1s,2s,5s, at most 1m each: shows whether the log is flushed by time
            idle: Vec<TimeSpec> [value_name = "TIME,…", value_delimiter = ',', allow_hyphen_values = true, help_heading = LOAD];
            /// Transactions after which a job closes its session and opens a new one; the time to connect is a figure of its own. Client
            /// driver only
            reconnect_every: u64 [value_name = "N", value_parser = whole::<u64>, allow_hyphen_values = true, help_heading = LOAD] where ("1", "1000000000");
            /// How often each key is drawn: zipf:S, key number k as often as k^-S, or hot:KEYS%:DRAWS%, e.g. zipf:1.1 or hot:10%:90%. Of
            /// transactions, cached queries and workloads of your own (see docs/load.md) [default: that of the plan, else all alike]
            keys: Keys [value_name = "LAW", help_heading = LOAD];
            // Data and payloads.
            /// Size of the data set that workloads read, 1 MiB to 8 TiB [default: that of the plan, else 128MiB].
            /// The sizes of other tables are parameters of their workloads
            size: String [value_name = "SIZE", allow_hyphen_values = true] = (DEFAULT_SIZE_BYTES, "1 MiB", "8 TiB");
            /// Leave the data set on the target after the run, for the next one [default: removed]
            keep_data: bool [num_args = 0, default_missing_value = "true"];
            /// Drop an existing data set and load it again
            reload: bool [num_args = 0, default_missing_value = "true", help_heading = DATA];
            /// Share of the payload that can be compressed away, 0 to 1 [default: that of the plan, else 0]
            payload_compressibility: f64 [value_name = "SHARE", value_parser = share, allow_hyphen_values = true, help_heading = DATA] = (0.0, "0", "1");
            /// Share of the payloads that are copies of earlier ones, 0 to 100%, for arrays that deduplicate; also counts the identical
            /// blocks of 4 KiB in the data files after each test (see docs/costs.md) [default: no copies, and no count]
            payload_duplicates: ShareSpec [value_name = "SHARE", allow_hyphen_values = true, help_heading = DATA] where ("0", "100%");
            /// Seed of all randomness: of rows [default: that of the plan, else 42], and of what jobs draw [default: that of the plan, else
            /// one drawn for each run]
            seed: u64 [value_name = "N", allow_hyphen_values = true, value_parser = whole::<u64>];
            // Proofs of figures.
            /// Name of the platform in tables and charts [default: product and version]
            platform: String [value_name = "NAME"];
            /// Latency that must be met at the load line, with its unit, e.g. 5ms [default: that of the plan, else none: the load line is
            /// then the load with the highest throughput / latency]
            latency_objective: TimeSpec [value_name = "TIME", allow_hyphen_values = true];
            /// Most time to wait for a quiet machine and for second tries of tests that others disturbed, as a share of the time of the
            /// plan; 0: none (see docs/truth.md)
            /// [default: that of the plan, else 30%]
            patience: ShareSpec [value_name = "SHARE", allow_hyphen_values = true, help_heading = PROOF] = (0.3, "0", "300%");
            /// Do not probe the storage, and do not measure the limit of each test (saves up to 4 s a run, and 0.4 to 4 s a
            /// test)
            probe: bool [long = "no-probe", num_args = 0, default_missing_value = "false", help_heading = PROOF];
            /// Memory of the server's machine, e.g. 64GiB, if loadline cannot enter it: bounds what its caches can hide. With a --size k
            /// times as large, at most 1/k of random reads are cached [default: what the server states, if it does]
            server_memory: String [value_name = "SIZE", help_heading = PROOF] where ("16 MiB", "1024 TiB");
            /// Watch the database grow old: 60 parts of the window, each with throughput and 99th percentile, and the size of the tables and
            /// what is unused in them after each. Client driver only; use a long window, as the plan 'aging' does
            aging: bool [num_args = 0, default_missing_value = "true", help_heading = PROOF];
            /// Keep storage figures although reads did not come from the device; such tests are marked
            allow_cached: bool [num_args = 0, default_missing_value = "true", help_heading = PROOF];
            /// Count the instructions and cache misses of the database's processes on this machine (perf_event_open). Each switch between
            /// them then takes longer, so compare throughput with runs that have it too [default: neither is counted]
            perf_events: bool [num_args = 0, default_missing_value = "true", help_heading = PROOF];
            /// Oracle: take AWR snapshots around each test and keep the AWR report in the run folder. Needs a licence for the
            /// Diagnostics Pack; without this flag AWR and ASH are never used
            oracle_awr: bool [num_args = 0, default_missing_value = "true", help_heading = PROOF];
        }
    }
    more {
        /// The database under test.
        TargetOptions [""; 0] {
            /// Database under test [default: sqlite:], e.g. postgres://user@host/db,
            /// 'postgres://user@/db?host=/run/postgresql&port=5433', postgres-temp:, null: (see `loadline targets`)
            target: String [value_name = "URL", value_hint = ValueHint::Url];
            /// Another instance of the same cluster; repeatable. Jobs are spread over all instances in turn
            node: Vec<String> [value_name = "URL", value_hint = ValueHint::Url];
        }
        /// How agents are reached.
        HubOptions [""; 0] {
            /// Hub at which agents wait: a NATS server, nats://HOST:PORT or tls://HOST:PORT, with a token@ or user:password@ before HOST
            /// if it asks for one [default: the environment variable LOADLINE_HUB]
            hub: String [value_name = "URL", value_hint = ValueHint::Url];
        }
        /// How many pairs of windows are measured, of two arms or of levels.
        PairOptions ["resume"] {
            /// Pairs of windows per workload and job count; with --precision, the most [default: 16; with --precision 200]
            pairs: u32 [value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>] where ("1", "10000");
        }
        /// Demands on a comparison of two arms.
        PrecisionOptions ["resume"] {
            /// Measure until the interval of the ratio is this narrow, e.g. 2%, looking at numbers of pairs that are set before
            precision: ShareSpec [value_name = "PERCENT", allow_hyphen_values = true] where ("0.01%", "50%");
            /// Difference up to which the arms are called equivalent [default: 2%]
            equivalence: ShareSpec [value_name = "PERCENT", allow_hyphen_values = true] = (DEFAULT_EQUIVALENCE, "0.01%", "50%");
        }
        /// Proxies and poolers.
        ViaOptions [""; 0] {
            /// Proxy or pooler before the --target, such as pgbouncer, as the URL of a target: arm B, whose jobs go through it, while those
            /// of arm A go directly; repeatable: arms C, D, … (see docs/ab.md)
            via: Vec<String> [value_name = "URL", value_hint = ValueHint::Url];
        }
        /// Levels of replication and distances.
        LevelOptions ["resume"] {
            /// Levels, separated by commas, e.g. local,remote_write,on (see docs/replica-cost.md) [default: all that one replica has]
            levels: Vec<String> [value_name = "LEVEL,…", value_delimiter = ','];
            /// Standby of the --target, a server of your own, and one that receives from it; repeatable: two for levels such as on:any-1.
            /// Levels are then changed by ALTER SYSTEM while the run lasts, and put back
            standby: Vec<String> [value_name = "URL", value_hint = ValueHint::Url];
            /// One-way delays between the database and its replicas, separated by commas, e.g. 0,0.2ms,1ms,5ms,20ms
            /// [default: 0,1ms,5ms]
            delay: Vec<TimeSpec> [value_name = "TIME,…", value_delimiter = ',', allow_hyphen_values = true];
        }
    }
    keys {
        /// Facts of the platform, by name (see `loadline_model::facts`).
        facts: BTreeMap<String, serde_json::Value>;
        /// Settings of a private server.
        setting: BTreeMap<String, String>;
        /// Workload parameters by workload code.
        parameters: BTreeMap<String, BTreeMap<String, i64>>;
        /// Whether `jobs` are those of each node, and not all together.
        jobs_per_node: bool;
        /// Parts of the jobs that differ, in the order of the jobs' numbers; instead of `jobs`, `think` and `rate`.
        populations: Vec<PopulationSpec>;
        /// Changes of each arm, A's first (`loadline ab`).
        variant: Vec<VariantSpec>;
    }
}

/// A value as a user writes it, of an option that has a range.
pub trait Ranged: Display {
    type Value: PartialOrd;
    /// The value that a text means.
    fn parse(text: &str) -> Result<Self::Value, String>;
}

macro_rules! ranged {
    ($($type:ty => $value:ty, $parse:expr;)*) => {
        $(impl Ranged for $type {
            type Value = $value;
            fn parse(text: &str) -> Result<$value, String> {
                $parse(text)
            }
        })*
    };
}

ranged! {
    u32 => u32, number;
    u64 => u64, number;
    f64 => f64, number;
    // A size, bytes.
    String => u64, parse_bytes;
    // Seconds.
    TimeSpec => f64, parse_duration_s;
    // A share, of 1.
    ShareSpec => f64, share_of;
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

/// The value that is `given` for the option `name`, and is at least and at most what `bounds` say.
pub(super) fn in_range<T: Ranged>(name: &str, given: &T, bounds: [&str; 2]) -> Result<T::Value, PlanError> {
    let (name, text) = (name.replace('_', "-"), given.to_string());
    let value_of = |text: &str| T::parse(text).map_err(|e| PlanError::Value(format!("{name}: {e}")));
    let [found, least, most] = [value_of(&text)?, value_of(bounds[0])?, value_of(bounds[1])?];
    if least <= found && found <= most {
        return Ok(found);
    }
    value(format!("{name} {text} must be between {} and {}", bounds[0], bounds[1]))
}

/// Job counts of a command line.
fn jobs(text: &str) -> Result<JobsSpec, String> {
    let counts: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
    match counts {
        Ok(list) => Ok(JobsSpec::List(list)),
        Err(_) if !text.contains(',') => Ok(JobsSpec::Word(text.to_owned())),
        Err(_) => Err(format!("'{text}' is not a list of job counts: write 1,2,4,8 or auto")),
    }
}

/// The rate of a command line; what else it may be is said with that of a plan file.
fn rate(text: &str) -> Result<RateSpec, Infallible> {
    Ok(text.parse().map_or_else(|_| RateSpec::Text(text.to_owned()), RateSpec::Tps))
}

/// Whether it is one of those allowed is checked with the plan.
fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is no whole number from 0 on, such as 8"))
}

fn share(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is no number from 0 to 1, such as 0.5"))
}

/// Parses one of `values`: each has its name, its help and what it means.
pub fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let shown = values.each_ref().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(shown).try_map(move |text| {
        let found = values.iter().find(|(name, ..)| *name == text);
        found.map(|(.., value)| value.clone()).ok_or("unknown value")
    })
}

pub fn driver() -> impl TypedValueParser<Value = Driver> {
    one_of(Driver::ALL.map(|driver| (driver.name(), driver.about(), driver)))
}
