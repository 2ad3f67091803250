//! Results of the checks of a test.

use serde::{Deserialize, Serialize};

crate::named! {
    /// A check. It is stored by its identifier, which never changes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CheckId {
        Agents: "agents", "Agents: all answered, started within 2 ms of each other and shared one window.";
        AgentsNetwork: "agents-network", "Agents: no network link of theirs was used by more than 85 %; noted from 25 % on.";
        BatchesSeen: "batches-seen", "DBL-STREAM: another session saw at least 99 % of the batches that were due.";
        CacheHit: "cache-hit", "Server workloads: the database's cache served at least 99.9 % of the blocks.";
        Checkpoint: "checkpoint", "DBWR-CKPT: a checkpoint began in the window.";
        ClientCpu: "client-cpu", "loadline used less than 85 % of its machine's CPU; noted from 25 % on.";
        ClientThrottled: "client-throttled", "No control group stopped loadline: noted from 1 %, disturbed from 10 % of its periods.";
        Cluster: "cluster", "Each node was a member of its cluster throughout the test, and nobody left or joined it.";
        CommitsDatabase: "commits-database", "From the first job's start to the last one's end the database counted as many commits as the jobs.";
        CommitsNode: "commits-node", "Each node counted the commits of the jobs that were meant to be on it.";
        CommitsPerSync: "commits-per-sync", "No more commits per sync of the log than jobs: commits waited until they were durable.";
        CommitsWindow: "commits-window", "In the window the database counted as many commits as the jobs.";
        Consistency: "consistency", "The workload's own conditions hold after the test, such as that no money was lost.";
        Counters: "counters", "No counter of the database went backwards: it was not reset.";
        CpuAffinity: "cpu-affinity", "loadline may use all CPUs; noted if not.";
        CpuSteal: "cpu-steal", "The hypervisor took no CPU time: noted from 1 %, disturbed from 10 %.";
        DataSource: "data-source", "Storage workloads: blocks were read from the device, and no cache answered in its place.";
        DataWritten: "data-written", "Workloads that write data: the database and the device wrote the blocks that were changed.";
        DatabaseThrottled: "database-throttled", "No control group stopped the database; noted from 1 % of its periods, because its limit is part of the platform.";
        Errors: "errors", "At most 1 % of the transactions failed; any is noted.";
        Kinds: "kinds", "The times of the kinds of transactions, merged, are those of all: each bucket of the histogram, sum and longest.";
        LittlesLaw: "littles-law", "Closed loop: jobs = throughput × time per transaction, plus thinking and connecting, within 5 %.";
        MemoryPressure: "memory-pressure", "Tasks did not wait for memory: noted from 5 %, disturbed from 40 % of the time.";
        OtherCpu: "other-cpu", "Other processes used little CPU: noted from 5 %, disturbed from 20 %.";
        OtherIo: "other-io", "The device was not busy for others: noted from 5 %, disturbed from 40 %.";
        OtherSessions: "other-sessions", "No other session worked on the server; noted from 5 % of one session's time.";
        OtherSessionsCpu: "other-sessions-cpu", "Other sessions used little CPU: noted from 5 %, disturbed from 20 %.";
        ParallelWorkers: "parallel-workers", "As many processes worked on a query as were asked for.";
        Rate: "rate", "Open loop: the target kept up with the rate; noted if not.";
        ReadOnly: "read-only", "pgbench scripts that may only read changed no row; noted if rows were changed in the database meanwhile.";
        Record: "record", "The test's line in the record is as it was written.";
        RedoOnDevice: "redo-on-device", "Durable commits: the log's device wrote at least half of the redo, and half as often as the log was synced.";
        RedoSize: "redo-size", "Redo per transaction is what the workload is defined with.";
        Replicas: "replicas", "As many replicas as a commit waits for were connected and synchronous in the whole window.";
        RoundTrip: "round-trip", "A commit that waits for a replica took at least a round trip to it.";
        RowsChanged: "rows-changed", "The database counted the changed rows of the jobs, within 5 %.";
        RowsRead: "rows-read", "The database counted at least the rows that the queries must have read.";
        Settings: "settings", "No setting of the database changed during the test.";
        Sizes: "sizes", "LGWR-SIZE: samples of more than one size, and few outliers.";
        Steady: "steady", "The window stayed on one level of throughput; noted if not, with when it left it.";
        ThermalThrottling: "thermal-throttling", "Heat did not slow the CPU down: noted from 1 %, disturbed from 20 % of the time.";
        ThinkTime: "think-time", "Jobs thought as long as asked, on average; noted if longer.";
        UnknownCpu: "unknown-cpu", "CPU time that no process explains is small: noted from 15 %, disturbed from 40 %.";
        WarmUp: "warm-up", "--warmup auto: throughput was steady before the window opened; noted if not.";
        Window: "window", "All jobs ran from before the window's start until after its end, and completed transactions in it.";
        WorkEvidence: "work-evidence", "The rows in the database are those that the jobs' transactions must have left.";
    }
    pub fn id;
    /// Condition for its test to be valid.
    pub fn must;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Passed,
    /// The figures are valid, but the reader should know `detail`.
    Noted,
    /// A proof failed, and the test is refused; or others disturbed it ([`CheckId::is_of_disturbance`]).
    Failed,
    /// The check was not possible; `detail` says why.
    NotMade,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub id: CheckId,
    pub outcome: Outcome,
    /// One sentence: the value seen, the value allowed, and the counters used.
    pub detail: String,
}

impl Check {
    #[must_use]
    pub fn new(id: CheckId, outcome: Outcome, detail: impl Into<String>) -> Check {
        Check { id, outcome, detail: detail.into() }
    }
}
