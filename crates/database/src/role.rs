//! The roles of a database: traits grouped by their caller.
//!
//! Every database has the first four roles; [`Target`](crate::Target) combines them. The others are optional:
//! [`Abilities`](crate::Abilities) says which of them a database has.
//!
//! A method fails if the target does not answer, refuses a statement, or this user may not use it; `# Errors` says what else.
//!
//! | role | called by |
//! | --- | --- |
//! | [`Administration`] | the study: lock, tables, loading, proof of the jobs' work, cleaning |
//! | [`Doctor`] | the study at its start, and `loadline doctor` |
//! | [`ClientDriver`] | each job of the client driver |
//! | [`Observation`] | the sampler, and the study around each test |
//! | [`DatabaseDriver`] | each job of the in-database driver |
//! | [`Tables`] | the study, for the data set shared by many workloads; checks of the jobs' work, and sizes of tables |
//! | [`Settings`](crate::Settings) | the study of two arms, before each of its tests |
//! | [`Ways`](crate::Ways) | the study of jobs through a proxy, before each of its tests |
//! | [`Nodes`](crate::Nodes) | the study before and after each test over nodes |
//! | [`StatisticsViews`] | the study before and after each test, and `loadline snapshot` |
//! | [`Levels`] | the study of levels (`loadline replica-cost`) before and in each of its tests |
//! | [`BlockCache`], [`ParallelQueries`], [`NativeReports`] | the instruments of these names |

mod administration;
mod doctor;
mod drivers;
mod levels;
mod observation;
mod optional;

pub use administration::{Administration, LogSpace, RunLock};
pub use doctor::{Doctor, GrantSql, JobLimit, PRIVILEGE, Privilege, Use};
pub(crate) use drivers::median_of_three;
pub use drivers::{
    Attempts, Canceller, ClientDriver, ClientSession, DatabaseDriver, DatabaseSession, Results, Slice, SliceEnd,
    TextDone, TextResult,
};
pub use levels::{Level, Levels, Replica, ReplicaWatch};
pub(crate) use levels::{find_level, not_in_force, wait_in_force};
pub use observation::{Observation, Observer, Scope, SessionTasks};
pub use optional::{
    BlockCache, FreeSpace, NativeReports, ParallelQueries, ParallelWorkers, StatisticsViews, Tables, Wear, WorkerLimit,
};
