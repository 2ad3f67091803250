//! What headers mean that are no ids of ours: our own headings, and the words of other benchmarks and of reports.
//!
//! There is one reading order ([`read`]): a percentile or an extreme among the words makes it one of a time; a spread, a change
//! or a ratio is no figure of ours; what is left is looked up with all its words, then without those that only qualify it. The
//! unit must be that of the column, and count the same pieces.

use std::collections::HashMap;
use std::sync::LazyLock;

use loadline_model::column::{COLUMNS, column};
use loadline_model::format::Format;

use crate::audit::header::Header;
use crate::audit::unit::{self, Of, Per, Piece, Unit};

/// Columns that others print and we do not.
const MORE: [&str; 9] = [
    "transaction_time_ns_min", "transaction_time_ns_p75", "transaction_time_ns_p90", "transaction_time_ns_p95",
    "transaction_time_ns_p999", "transaction_time_ns_p9999", "cpu_nice_pct", "cpu_irq_pct", "cpu_softirq_pct",
];

/// Other words for columns, without their units.
const HEADINGS: &[(&str, &str)] = &[
    (
        "platform",
        "system|database|db|dbms|engine|machine|product|configuration|config|server|vendor|provider|cloud provider|cloud|instance\
         |instance type|storage|storage type|version|release",
    ),
    ("workload", "benchmark|scenario|load|test name|script"),
    ("test", "test no|test nr|test number|test id|no|nr"),
    ("run", "run id|run no"),
    ("nodes", "instances|hosts|node count"),
    (
        "jobs",
        "client|clients|connection|connections|conn|conns|users|vusers|vuser|vus|vu|sessions|concurrency|degree of concurrency\
         |terminals|warehouse terminals|processes|load processes|job|numjobs|workers|backends",
    ),
    (
        "commit_throughput_tps",
        "tps|throughput|commit|commits|commit rate|transaction rate|transaction throughput|op rate|request rate|request throughput|txn\
         |txns|tx|trx|trans|xact|xacts|user commits|tpm|nopm|tpmc|ktps|rps|ops|operations|requests|req|reqs|http reqs|batch requests\
         |events|calls|executions|orders",
    ),
    ("tx_per_s", "transactions|user transactions|transactions actually processed"),
    ("queries_per_s", "qps|query|query rate|query throughput|statement|statements|select|selects|kqps|throughput"),
    (
        "commit_latency_ms",
        "latency|lat|latency average|response time|response|resp|resp time|rt|commit latency|transaction latency|tx latency|transaction response time\
         |request latency|http req duration|transaction time|avg time|average time|mean time|time mean",
    ),
    (
        "elapsed_s",
        "duration|time|run time|runtime|elapsed time|test duration|wall time|wall clock time|total time|window|seconds",
    ),
    ("cpu_busy_pct", "cpu|cpu utilization|cpu utilisation|cpu usage|cpu util|cpu load|host cpu|processor time|busy"),
    ("cpu_user_pct", "user|usr|cpu usr|user cpu|us"),
    ("cpu_sys_pct", "sys|system|system cpu|cpu system|kernel|cpu kernel|sys cpu|sy"),
    ("cpu_idle_pct", "idle|idle cpu|id"),
    ("cpu_iowait_pct", "iowait|wait|wio|io wait|cpu wait|cpu io wait|cpu wio|wa"),
    ("cpu_steal_pct", "steal|st|stolen"),
    ("cpu_nice_pct", "nice|ni"),
    ("cpu_irq_pct", "irq|hi"),
    ("cpu_softirq_pct", "soft|softirq|si"),
    (
        "redo_mib_per_s",
        "redo|redo rate|redo size|redo generated|redo generation|redo throughput|wal|wal rate|wal written|wal data|wal generated\
         |log rate|log data|log throughput|binlog",
    ),
    ("redo_kib_per_tx", "redo|redo size|wal|wal size|log|redo record|redo data"),
    ("redo_writes_per_s", "log writes|wal writes|redo write|log file parallel writes|redo write requests"),
    (
        "redo_sync_writes_per_s",
        "syncs|fsyncs|fsync|wal sync|wal syncs|log syncs|redo syncs|redo synch writes|log fsyncs|wal fsyncs|sync writes",
    ),
    ("commits_per_redo_sync", "commits sync|commits fsync|trx fsync|transactions fsync|commits group"),
    ("redo_blocks_per_s", "redo blocks written|log blocks|wal blocks"),
    ("log_file_sync_ms", "log sync|log file sync time|log file sync wait|lfs|wal sync time"),
    ("redo_write_time_us", "log file parallel write|log write time|wal write time"),
    ("rows_per_tx", "rows|batch size|batch|rows commit|rows batch|rows insert|array size"),
    (
        "rows_per_s",
        "rows|row rate|insert|inserts|rows inserted|insert rate|rows loaded|load rate|records|throughput|docs",
    ),
    ("sql_service_time_s", "service time"),
    ("physical_writes_per_s", "writes|disk writes|write iops|write requests|data writes"),
    ("physical_written_mib_per_s", "write|write throughput|write bandwidth|written|disk write"),
    ("block_gets_per_s", "gets|buffer gets|logical reads"),
    ("block_reads_per_s", "reads|physical reads|disk reads|read iops|single block reads|read requests"),
    ("read_mib_per_s", "read|read throughput|read bandwidth|disk read"),
    ("read_time_us_mean", "read latency|read lat|read time|db file sequential read"),
    ("io_per_s", "iops|io|ios|io requests|kiops|throughput"),
    ("block_bytes", "bs|block size|page size|io size"),
    ("data_mib_per_s", "bw|bandwidth|scan rate|scan throughput|data rate|throughput|data throughput|transfer"),
    ("errors", "failed|failures|failed transactions|aborts|errors count"),
    (
        "rate_tps",
        "target|target rate|requested rate|target tps|target throughput|offered|offered load|offered rate|rate limit|request rate target",
    ),
    ("threads", "thread|nthreads|parallel degree|dop|parallelism"),
    ("repetition", "rep|iteration|round"),
    (
        "cache_hit_pct",
        "cache hit|buffer hit|cache hit ratio|buffer hit ratio|hit ratio|hit rate|buffer cache hit ratio",
    ),
];

/// Families of times: the beginning of their ids, and words for them. No words at all mean the first.
const TIMES: [(&str, &str); 3] = [
    (
        "transaction_time_ns",
        "|latency|lat|clat|response time|transaction time|transaction latency|tx time|tx latency|commit latency|rt|response|resp|http req duration",
    ),
    ("commit_time_ns", "commit time|commit|commit wait"),
    ("read_time_us", "read time|read latency|read"),
];

/// Words that qualify a figure and do not change what it is, and of which columns.
const QUALIFIERS: [(&str, Kind); 6] = [
    ("number of in the a num nr no count and per", Kind::Any),
    ("avg average mean arithmetic run runs", Kind::Figure),
    ("total overall aggregate aggregated combined", Kind::Count),
    ("measured achieved actual observed served completed sustained successful committed", Kind::Rate),
    (
        "concurrent simultaneous parallel virtual emulated simulated client worker db database load pgbench c active",
        Kind::Sessions,
    ),
    ("read write insert update delete select", Kind::Part),
];

/// Words of figures that are computed of others, or of their spread: none of our columns.
const DERIVED: &str = "delta δ diff difference change gain improvement increase decrease reduction speedup relative ratio factor vs \
    versus loss overhead stddev stdev std sd dev deviation σ variance cv jitter ci confidence margin rank sum stall efficiency scaling share mix";

/// Words for parts of the work or of the machine.
const KINDS: &str = "server host primary standby replica master slave random sequential seq new order payment commit query scan \
    first last upper lower typical";

/// Rates of work, the first that there is being that of transactions.
pub(crate) const THROUGHPUTS: [&str; 4] = ["commit_throughput_tps", "tx_per_s", "queries_per_s", "io_per_s"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    /// Not a setting.
    Figure,
    /// A rate, or sessions.
    Count,
    Rate,
    Sessions,
    /// A throughput.
    Part,
}

impl Kind {
    fn is_of(self, id: &str) -> bool {
        let unit = || Unit::of_id(id).dimension;
        let rate = || unit().per == Per::Second;
        match self {
            Kind::Any => true,
            Kind::Figure => !SETTINGS.contains(&id) && !is_text(id) && id != "elapsed_s",
            Kind::Count => rate() || id == "jobs",
            Kind::Rate => rate(),
            Kind::Sessions => matches!(id, "jobs" | "threads"),
            Kind::Part => THROUGHPUTS.contains(&id),
        }
    }
}

/// Settings; the first that varies is what a series is over, the others tell series apart.
pub(crate) const SETTINGS: [&str; 10] = [
    "jobs", "rows_per_tx", "threads", "nodes", "rate_tps", "delay_ms", "block_bytes", "write_pct", "indexes", "groups",
];

/// Whether the cells of a column are text.
pub(crate) fn is_text(id: &str) -> bool {
    column(id).is_some_and(|c| matches!(c.format, Format::Text | Format::YesNo))
}

/// What a header means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) id: &'static str,
    /// How many words had to be left out: of two headers with one meaning, that with fewer is it.
    pub(crate) rank: usize,
    /// Whether the words alone may mean much else.
    pub(crate) ambiguous: bool,
}

/// All columns that audits know: ours, and [`MORE`].
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|c| c.id).chain(MORE)
}

/// The column with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static str> {
    known().find(|k| *k == id)
}

/// Words -> columns that they may mean.
static BY_WORDS: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<&'static str>> = HashMap::new();
    let mut add = |words: String, id: &'static str| {
        let ids = all.entry(words).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    };
    for id in known() {
        let words: Vec<&str> = id.split('_').collect();
        add(unit::take_unit(&words).0.join(" "), id);
    }
    for c in COLUMNS.iter() {
        add(Header::parse(c.title).words.join(" "), c.id);
    }
    for (id, words) in HEADINGS {
        if let Some(id) = find(id) {
            words.split('|').for_each(|w| add(w.trim().to_owned(), id));
        }
    }
    all.remove("");
    all
});

/// The pieces that a column counts.
fn pieces(id: &str) -> Piece {
    match id {
        "rows_per_s" | "rows_per_tx" => Piece::Row,
        "queries_per_s" => Piece::Query,
        "io_per_s" => Piece::Io,
        "commit_throughput_tps" | "tx_per_s" | "rate_tps" => Piece::Transaction,
        _ => Piece::Any,
    }
}

/// Whether a column can have this unit.
fn fits(id: &str, unit: Option<&Unit>) -> bool {
    let own = Unit::of_id(id).dimension;
    let Some(printed) = unit else { return true };
    let counts = [Piece::Any, pieces(id)].contains(&printed.piece)
        || pieces(id) == Piece::Any && matches!(printed.piece, Piece::Transaction | Piece::Io);
    let (of, per) = (printed.dimension.of, printed.dimension.per);
    let per_tx = |wanted| own.of == wanted && own.of == of;
    counts
        && (own == printed.dimension
            // A size of redo without "per transaction" is that of a transaction; a time per transaction is one.
            || per_tx(Of::Bytes) && own.per == Per::Transaction && per == Per::Whole
            || per_tx(Of::Time) && own.per == Per::Whole && per == Per::Transaction && id != "elapsed_s")
}

/// The column that a header means.
pub(crate) fn read(header: &Header) -> Option<Meaning> {
    let unit = header.unit.as_ref();
    let words: Vec<&str> = header.words.iter().map(String::as_str).collect();
    // vmstat's "us" is no time.
    if let ([], Some(unit)) = (words.as_slice(), unit)
        && unit.text == "us"
    {
        return Some(Meaning { id: "cpu_user_pct", rank: 0, ambiguous: true });
    }
    if let Some(id) = look_up(&words, header) {
        return Some(meaning(id, usize::from(!is_own(id, &words)), &words, unit));
    }
    if let Some((rest, which)) = quantile(&words) {
        let plain = without(&rest, |kind| matches!(kind, Kind::Any));
        let family = TIMES.iter().find(|(_, names)| names.split('|').any(|n| n == plain.join(" ")));
        let time = family.and_then(|(family, _)| find(&format!("{family}_{which}"))).filter(|id| fits(id, unit));
        // The median of several runs is their throughput.
        let rate = || look_up(&rest, header).map(|id| (id, 0)).or_else(|| qualified(&rest, header));
        let median = || rate().filter(|(id, _)| which == "p50" && Kind::Rate.is_of(id));
        return match time {
            Some(id) => Some(meaning(id, 0, &rest, unit)),
            None => median().map(|(id, rank)| Meaning { id, rank: rank + 5, ambiguous: false }),
        };
    }
    if is_derived(header) {
        return None;
    }
    if let Some((id, rank)) = qualified(&words, header) {
        return Some(meaning(id, rank, &words, unit));
    }
    if is_time_per(&words, unit) {
        return Some(Meaning { id: "commit_latency_ms", rank: 8, ambiguous: false });
    }
    // Nothing but "ms/tx", or the mean of something.
    let unit = unit.map(|u| u.dimension);
    let time = unit.is_none_or(|u| u.of == Of::Time && u.per != Per::Second);
    let named = |w: &&str| QUALIFIERS[1].0.split(' ').any(|q| q == *w);
    let mean = without(&words, |kind| matches!(kind, Kind::Any | Kind::Figure)).is_empty() && words.iter().any(named);
    let bare = matches!(words.as_slice(), [] | ["time" | "duration" | "elapsed"]);
    let per_tx = bare && unit.is_some_and(|u| u.per == Per::Transaction);
    (time && (mean || per_tx)).then(|| Meaning { id: "commit_latency_ms", rank: 9, ambiguous: unit.is_none() })
}

/// Whether a header says that its figures are computed of others.
pub(crate) fn is_derived(header: &Header) -> bool {
    let per = header.words.iter().position(|w| w == "per").and_then(|at| header.words.get(at.checked_sub(1)?));
    let rate = per.and_then(|w| Unit::parse(w)).is_some_and(|u| u.dimension.per == Per::Second);
    rate || header.words.iter().any(|word| DERIVED.split_whitespace().any(|d| d == word))
}

/// Whether words say which figure or statistic it is, rather than of which platform: "Max", "Read", "Δ", "Client".
pub(crate) fn is_kind(text: &str) -> bool {
    let header = Header::parse(text);
    let words: Vec<&str> = header.words.iter().map(String::as_str).collect();
    let role =
        |w: &str| KINDS.split(' ').any(|k| k == w) || QUALIFIERS.iter().any(|(all, _)| all.split(' ').any(|q| q == w));
    is_derived(&header) || quantile(&words).is_some() || words.iter().all(|w| role(w))
}

/// Whether nothing but a word that is used for much else says that it is `id`.
fn meaning(id: &'static str, rank: usize, words: &[&str], unit: Option<&Unit>) -> Meaning {
    let share = Unit::of_id(id).dimension.of == Of::Share;
    let bare = unit.is_none() && words.len() < 2;
    let cpu = id.starts_with("cpu_") && !words.contains(&"cpu") && bare && share;
    let rows = bare && words == ["rows"];
    let time = bare && words.is_empty();
    Meaning { id, rank, ambiguous: cpu || rows || time }
}

/// Whether words are those of an id or a title of ours.
fn is_own(id: &'static str, words: &[&str]) -> bool {
    let text = words.join(" ");
    let own: Vec<&str> = id.split('_').collect();
    unit::take_unit(&own).0.join(" ") == text || column(id).is_some_and(|c| c.title.to_lowercase() == text)
}

/// The column of words as they are, with the rate among them and without it, or of the unit alone.
fn look_up(words: &[&str], header: &Header) -> Option<&'static str> {
    let unit = header.unit.as_ref();
    let rate = header.rate.as_deref();
    let with = |words: &[&str]| words.iter().copied().chain(rate).collect::<Vec<_>>().join(" ");
    let texts = [
        words.join(" "),
        with(words),
        if words.is_empty() { unit.map_or(String::new(), |u| u.text.to_lowercase()) } else { String::new() },
    ];
    // Words that need their unit to mean anything.
    if unit.is_none()
        && ["rate", "limit", "data", "written", "write", "read", "log", "transfer"].contains(&texts[0].as_str())
    {
        return None;
    }
    texts.iter().filter(|t| !t.is_empty()).find_map(|text| {
        let fitting: Vec<&'static str> = BY_WORDS.get(text)?.iter().copied().filter(|id| fits(id, unit)).collect();
        let same = |id: &&&str| {
            unit.is_some_and(|u| u.size == Unit::of_id(id).size && (u.piece == pieces(id) || u.piece == Piece::Any))
        };
        // Without a unit, columns of text and plain numbers come first, as their headers need none.
        let plain = |id: &&&str| unit.is_none() && column(id).is_some_and(|c| c.unit.is_empty());
        fitting.iter().find(same).or_else(|| fitting.iter().find(plain)).or(fitting.first()).copied()
    })
}

/// Words without qualifiers.
fn without<'w>(words: &[&'w str], allowed: impl Fn(Kind) -> bool) -> Vec<&'w str> {
    let qualifies =
        |word: &str| QUALIFIERS.iter().any(|(all, kind)| allowed(*kind) && all.split(' ').any(|w| w == word));
    // "median of 3", "run 2"
    let repeated = words.iter().any(|w| ["of", "run", "runs"].contains(w));
    let number = |word: &str| repeated && word.chars().all(|c| c.is_ascii_digit());
    words.iter().copied().filter(|w| !qualifies(w) && !number(w)).collect()
}

/// The column of words without those that only qualify it, and how many these are.
fn qualified(words: &[&str], header: &Header) -> Option<(&'static str, usize)> {
    use Kind::{Any, Count, Figure, Part, Rate, Sessions};
    // "tps (without initial connection time)"
    let end = words.iter().position(|w| ["without", "excluding", "including", "excl", "incl"].contains(w));
    let words = &words[..end.unwrap_or(words.len())];
    let groups: [(&[Kind], Kind); 5] = [
        (&[Any], Any),
        (&[Any, Figure], Figure),
        (&[Any, Count, Sessions], Sessions),
        (&[Any, Figure, Count, Rate], Rate),
        (&[Any, Figure, Count, Rate, Part], Part),
    ];
    groups.into_iter().find_map(|(dropped, kind)| {
        let rest = without(words, |k| dropped.contains(&k));
        let id = look_up(&rest, header).filter(|id| kind.is_of(id))?;
        let dropped = words.len() - rest.len();
        let rank = 2 + dropped + if kind == Part { PART } else { 0 };
        (dropped > 0 || end.is_some()).then_some((id, rank))
    })
}

/// Rank of a figure of some of the work: the writes, the inserts. Two of them are no figure of all.
pub(crate) const PART: usize = 20;

/// Time per anything: per call, per insert.
fn is_time_per(words: &[&str], unit: Option<&Unit>) -> bool {
    let Some((time, _)) = words.iter().position(|w| *w == "per").map(|at| words.split_at(at)) else { return false };
    let time = without(time, |kind| matches!(kind, Kind::Any | Kind::Figure));
    let named = matches!(time.as_slice(), ["time" | "latency" | "duration" | "elapsed"] | ["response", "time"] | []);
    let timed = unit.is_some_and(|u| u.dimension.of == Of::Time && u.dimension.per == Per::Whole);
    named && (timed || unit.is_none() && !time.is_empty())
}

/// A percentile or an extreme among words: what is left, and the end of its column's id.
fn quantile<'w>(words: &[&'w str]) -> Option<(Vec<&'w str>, String)> {
    let is = |word: &str| -> Option<String> {
        match word {
            "median" | "med" => Some("p50".to_owned()),
            "max" | "maximum" | "longest" | "highest" | "slowest" | "worst" | "peak" | "pmax" => Some("max".to_owned()),
            "min" | "minimum" | "shortest" | "lowest" | "fastest" | "best" => Some("min".to_owned()),
            _ => {
                let digits = word.strip_prefix('p')?;
                let plain: String = digits.chars().filter(|c| *c != '.').collect();
                (plain.len() > 1 && plain.bytes().all(|b| b.is_ascii_digit())).then(|| format!("p{plain}"))
            }
        }
    };
    let at = words.iter().position(|w| is(w).is_some())?;
    let which = is(words[at])?;
    let mark = |w: &str| ["percentile", "pctl", "percentiles", "th"].contains(&w);
    let rest = words.iter().enumerate().filter(|(i, w)| *i != at && !mark(w)).map(|(_, w)| *w).collect();
    Some((rest, which))
}
