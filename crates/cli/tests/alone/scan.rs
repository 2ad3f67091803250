//! Scans read the device: the number of its reads is that of all who read.

use crate::alone;
use crate::common::*;

#[test]
fn a_scan_of_sqlite_reads_many_blocks_at_once_from_the_device() {
    let _alone = alone();
    let dir = results();
    let short = "--workload STO-SCAN --jobs 2 --size 32MiB --duration 800ms --warmup 300ms --no-probe";
    let ran = on("sqlite:", &dir, short);
    let test = &tests_of(&ran.folder())[0];
    assert_eq!(figure(test, "block_bytes"), 1024.0);
    from_the_device(test);
    let (data, read) = (figure(test, "data_mib_per_s"), figure(test, "read_mib_per_s"));
    assert!((data / read - 1.0).abs() < 0.25, "{data} MiB/s of the table, {read} MiB/s read");
    // Of a small table what is read ahead is dropped at each pass. On a device slower than the passes it is
    // dropped before it is used; the test says so.
    let many_at_once = figure(test, "device_reads_per_s") < figure(test, "block_reads_per_s") / 4.0;
    let in_vain = figure(test, "device_read_share_pct") > 130.0;
    assert_eq!(in_vain, test["notes"].to_string().contains("\"device-read-more\""));
    assert!(many_at_once || in_vain, "{test}");
}
