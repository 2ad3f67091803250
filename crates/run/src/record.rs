//! Builds the record of a test: the only place that does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use loadline_database::Work;
use loadline_load::{Measured, Request};
use loadline_model::disturbance::disturbed_by;
use loadline_model::record::{AgentFigures, KindFigures, LevelPoint, NodeFigures, PopulationFigures};
use loadline_model::snapshot::WaitProfile;
use loadline_model::{Activity, ArmName, Driver, Forced, Latencies, Series, SizePoint, Snapshot, TestRecord, column};
use loadline_store::{NativeFile, TestOutput, rfc3339};

use crate::activity;
use crate::checks::{Facts, steady, verify};
use crate::figures::counters::Counters;
use crate::figures::series::series;
use crate::figures::{Figures, Proof, figures};
use crate::figures::{nodes, populations};

/// Identity of a test.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Platform name.
    pub platform: String,
    /// Run id.
    pub run: String,
    /// Number of the test.
    pub test: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Target URL without secrets.
    pub target: String,
    /// The work.
    pub work: Arc<Work>,
    /// Driver.
    pub driver: Driver,
    /// Arm, in a run of two.
    pub arm: Option<ArmName>,
    /// Level of replication, in a run of levels.
    pub level: Option<LevelPoint>,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of jobs.
    pub jobs: u32,
    /// What was refused but forced.
    pub forced: Vec<String>,
    /// Column of the swept parameter; `None` for a sweep over jobs.
    pub swept: Option<String>,
}

/// A finished test, with all that is stored of it.
#[derive(Debug)]
pub struct Finished {
    /// Its figures, checks and notes.
    pub figures: Figures,
    /// Wall-clock time of the window start.
    pub opened_at: SystemTime,
    /// Sampled wait events of the sessions.
    pub waits: WaitProfile,
    /// Texts of the errors.
    pub error_texts: BTreeMap<String, u64>,
    /// Whether one of them was a full disk of the server.
    pub full_disk: bool,
    /// What each node did.
    pub by_node: Vec<NodeFigures>,
    /// What each population of the jobs did.
    pub populations: Vec<PopulationFigures>,
    /// What each kind of transaction did.
    pub kinds: Vec<KindFigures>,
    /// What each agent did.
    pub by_agent: Vec<AgentFigures>,
    /// Commit times by size, of a scan of sizes.
    pub sizes: Vec<SizePoint>,
    /// One row per second.
    pub series: Series,
    /// Latencies by kind.
    pub histograms: Vec<(String, Latencies)>,
    /// Snapshots of the counters.
    pub snapshots: Vec<(String, Snapshot)>,
    /// What the database's statistics views say of it.
    pub activity: Option<Activity>,
    /// The database's own report.
    pub native: Option<NativeFile>,
}

impl Finished {
    /// A test of jobs, with figures and checks.
    #[must_use]
    pub fn of_jobs(request: &Request, measured: &Measured, proof: &Proof) -> Finished {
        let counters = Counters::of(request, measured);
        let mut figures = figures(request, measured, &counters, proof);
        figures.checks = verify(&Facts::of(request, measured, &counters, proof, &figures));
        figures.checks.extend(steady::checks(request, measured));
        figures.checks.extend(nodes::membership(measured));
        match steady::within_window(request, measured) {
            Ok(share) => figures.set(column::WITHIN_WINDOW_PCT, 100.0 * share),
            Err(why) => figures.set_absent(column::WITHIN_WINDOW_PCT, why),
        }
        figures.checks.extend(nodes::check(request, measured));
        let merged = &measured.merged;
        let mut histograms =
            vec![("transaction".to_owned(), merged.transaction.clone()), ("commit".to_owned(), merged.commit.clone())];
        histograms.extend(merged.response.clone().map(|r| ("response".to_owned(), r)));
        histograms.extend(merged.connect.clone().map(|c| ("connect".to_owned(), c)));
        Finished {
            figures,
            opened_at: measured.opened_at,
            waits: measured.waits(),
            error_texts: merged.error_texts.clone(),
            full_disk: merged.full_disk,
            by_node: nodes::figures(request, measured, counters.as_ref().ok()),
            populations: populations::of_each(request, measured),
            kinds: populations::of_each_script(request, measured),
            by_agent: measured.agents.iter().map(AgentFigures::stored).collect(),
            sizes: Vec::new(),
            series: series(measured),
            histograms,
            snapshots: measured.snapshots().map(|(name, snapshot)| (name.to_owned(), snapshot.clone())).collect(),
            activity: Some(activity::of_window(measured, counters.as_ref().ok())),
            native: None,
        }
    }

    /// Converts it to the stored form.
    #[must_use]
    pub fn output(mut self, id: Identity) -> TestOutput {
        let workload = id.work.workload;
        let columns = self.figures.columns();
        let Figures { notes, checks, data_source, not_the_devices, limit, .. } = self.figures;
        // A scan has no rate to compare tests by.
        let kpis = if self.sizes.is_empty() { workload.kpis } else { &[] };
        let record = TestRecord {
            platform: id.platform,
            run: id.run,
            test: id.test,
            group: workload.group.to_owned(),
            target: id.target,
            driver: id.driver,
            nodes: id.nodes,
            arm: id.arm,
            level: id.level,
            jobs: id.jobs,
            repetition: id.repetition,
            started_at: rfc3339(self.opened_at),
            forced: Forced { refused: (!id.forced.is_empty()).then(|| id.forced.join("; ")), not_the_devices },
            absent: columns.absent,
            notes,
            error_texts: self.error_texts,
            data_source,
            kpis: kpis.iter().map(|k| k.column.id.to_owned()).collect(),
            swept: id.swept,
            limit,
            by_node: self.by_node,
            populations: self.populations,
            kinds: self.kinds,
            by_agent: self.by_agent,
            sizes: self.sizes,
            waits: self.waits,
            parameters: id.work.params.to_map(),
            seed: Some(id.work.draws),
            figures: columns.values,
            ..TestRecord::blank(workload.code)
        };
        let disturbed_by = disturbed_by(&record);
        TestOutput {
            record: TestRecord { disturbed_by, ..record }.with_checks(checks),
            series: self.series,
            histograms: self.histograms,
            snapshots: self.snapshots,
            activity: self.activity,
            native: self.native,
        }
    }
}
