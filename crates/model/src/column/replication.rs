//! Columns of replication: what went on between a database and its replicas.

use super::{Cell, Column, NOT, define, text_or_absent};
use crate::format::Format;

define! {
    ARM: "arm", "Arm", "", Format::Text,
        "Arm of a run of two arms; of a run of levels A is the baseline and B the level.",
        NOT, |r| r.arm().map_or(Cell::Absent, |arm| Cell::Text(arm.to_string()));
    LEVEL: "level", "Level", "", Format::Text,
        "How far a commit waits for replicas, in a run of levels; its arm A has the baseline, which waits for none.",
        NOT, |r| text_or_absent(r.level().map(|point| &point.level));
    DELAY_MS: "delay_ms", "Delay", "ms", Format::Fixed(1),
        "One-way delay that loadline's relay adds between the database and its replicas.",
        NOT, |r| r.level().map_or(Cell::Absent, |point| Cell::Number(point.delay_ms));
    RTT_MS: "rtt_ms", "Round trip", "ms", Format::Fixed(3),
        "Round trip between the database and its replicas: median of the probes in the window.",
        &[("*", "probes of loadline's own, which take the way of the replication's bytes through its relay")];
    REPLICAS_SYNCHRONOUS: "replicas_synchronous", "Synchronous replicas", "", Format::Integer,
        "Least number of synchronous replicas that the database stated in the window.",
        &[("postgres", "pg_stat_replication.sync_state sync or quorum, ten times a second")];
    REPLICA_BEHIND_MIB: "replica_behind_mib", "Replica behind", "MiB", Format::Fixed(2),
        "Most redo that a replica had not yet applied.",
        &[("postgres", "pg_current_wal_lsn() − pg_stat_replication.replay_lsn, ten times a second")];
    REPLICA_BEHIND_MS: "replica_behind_ms", "Replica behind", "ms", Format::Fixed(1),
        "Longest time from a commit until a replica applied it.",
        &[("postgres", "pg_stat_replication.replay_lag, ten times a second")];
    REPLICA_LINK_MIB_PER_S: "replica_link_mib_per_s", "Replica traffic", "MiB/s", Format::Fixed(2),
        "Bytes per second between the database and its replicas, both directions together.",
        &[("*", "bytes counted by loadline's relay")];
}
