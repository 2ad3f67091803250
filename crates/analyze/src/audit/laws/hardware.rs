//! What no hardware does.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, shown};
use crate::audit::judge::{Above, Limit, keep};

/// A limit: column, what one of its kind does, what a machine does (MiB/s), and what that is.
const RATES: [(&str, f64, f64, &str); 7] = [
    // PCIe 6.0 with 16 lanes: 121 GB/s. 128 lanes of it: 0.97 TB/s.
    ("device_write_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("device_read_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("redo_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("physical_written_mib_per_s", 460_000.0, 925_000.0, "64 lanes of PCIe 6.0 do 460,000 MiB/s"),
    // What a page cache gives is bounded by memory: 12 channels of DDR5-8800 in two sockets do 1.7 TB/s, HBM up to 8 TB/s.
    ("read_mib_per_s", 1_600_000.0, 7_600_000.0, "the memory of a server with two sockets does 1,600,000 MiB/s"),
    ("data_mib_per_s", 1_600_000.0, 7_600_000.0, "the memory of a server with two sockets does 1,600,000 MiB/s"),
    // 800 Gbit/s: 95,000 MiB/s in each direction.
    ("replica_link_mib_per_s", 190_000.0, 925_000.0, "a link of 800 Gbit/s does 190,000 MiB/s in both directions"),
];

/// A shortest time: column, what persistent memory takes, and what a CPU's cache takes, in the unit of the id.
const TIMES: [(&str, f64, f64); 4] = [
    ("log_file_sync_ms", 1e-3, 1e-5),
    ("redo_write_time_us", 0.3, 0.01),
    ("redo_sync_time_us", 0.3, 0.01),
    ("read_time_us_mean", 0.1, 0.01),
];

pub(super) fn check(context: &Context<'_>, findings: &mut Findings) {
    let found = |beyond: bool| if beyond { Above::Yes } else { Above::Edge };
    for (id, one, machine, what) in RATES.into_iter().filter(|(id, ..)| context.has(id)) {
        let nodes = |row| context.value("nodes", row).unwrap_or(1.0).max(1.0);
        let rate = |row| context.value(id, row).map(|rate| rate / nodes(row));
        let exceeds = |row| rate(row).map(|rate| if rate > one { found(rate > machine) } else { Above::No });
        let say = |row| {
            let rate = shown(rate(row).unwrap_or(0.0), 4);
            let text = format!("{rate} MiB/s per node: {what}; a wrong unit, a cache, or more nodes than printed");
            (Some(one * nodes(row)), text)
        };
        // Without a column of nodes, it may be the rate of any number of them.
        let columns = [id];
        let sure = context.has("nodes") && context.is_sure(&columns);
        keep(&Limit::of("hardware", &columns, id, sure, context), &exceeds, &say, context, findings);
    }
    for (id, durable, cache) in TIMES.into_iter().filter(|(id, ..)| context.has(id)) {
        let high = |row| context.sheet.figure(id, row).filter(|f| f.value > 0.0).map(|f| f.value + f.loose());
        let exceeds = |row| high(row).map(|high| if high < durable { found(high < cache) } else { Above::No });
        let text = "shorter than persistent memory takes: not durable, or a wrong unit";
        let columns = [id];
        let say = |_| (Some(durable), text.to_owned());
        keep(
            &Limit::of("hardware", &columns, id, context.is_sure(&columns), context),
            &exceeds,
            &say,
            context,
            findings,
        );
    }
}
