//! Published measurements: listed, printed as they are, and beside a run.

use crate::common::*;

#[test]
fn a_run_finds_its_place_among_published_platforms() {
    let listed = printed("references --format csv");
    assert!(listed.starts_with("reference,platform,published,workloads,tests"), "{listed}");
    let x9m = printed("references exadata-x9m");
    assert!(x9m.contains("X9M-2,LGWR-LAT1,4,192,2,2,2,1,0,98,0,17085,0.117"), "{x9m}");

    let results = results();
    let short = "--jobs 1,2 --duration 200ms --warmup 200ms --no-probe";
    let folder = on("null:?pause=1ms", &results, &format!("--workload LGWR-LAT1,LGWR-SIZE {short}")).folder();
    as_on_a_quiet_machine(&folder);
    run(&["report", folder.to_str().unwrap(), "--with", "exadata-x9m"]).fails(2, &["write reference:ID"]);
    let report = |more: &str| report(&folder, &format!("--with reference:exadata-x9m {more}"));
    let text = report("--format text");
    let published = text.split("Published, not measured").nth(1).unwrap();
    assert!(published.contains("loadline did not make them") && published.contains("33 tests"), "{published}");
    assert!(published.contains("Exadata X9M-2 (published)"), "it stands in the tables: {published}");

    let html = report("--format html");
    assert!(html.contains("The audit of Exadata X9M-2") && html.contains("cpu-parts"), "its audit is beside it");

    let csv = report("--format csv --columns platform,target,valid,commit_throughput_tps");
    let published: Vec<&str> = csv.lines().filter(|l| l.contains("(published)")).collect();
    assert_eq!(published.len(), 33, "{csv}");
    assert!(published.iter().all(|l| l.contains("reference:exadata-x9m,,")), "nobody has checked them: {published:?}");
}
