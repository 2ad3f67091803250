//! Published measurements: listed, printed as they are, and beside a run.

use crate::common::{as_on_a_quiet_machine, lat1, ok, results, run};

#[test]
fn a_run_finds_its_place_among_published_platforms() {
    let listed = ok(&["references", "--format", "csv"]).out;
    assert!(listed.lines().next().unwrap().starts_with("reference,platform,published,workloads,tests"), "{listed}");
    let printed = ok(&["references", "exadata-x9m"]).out;
    assert!(printed.contains("X9M-2,LGWR-LAT1,4,192,2,2,2,1,0,98,0,17085,0.117"), "{printed}");

    let results = results();
    let (dir, plan) = (results.path().to_str().unwrap(), ["--jobs", "1,2", "--duration", "200ms", "--warmup", "200ms"]);
    let own =
        ["run", "--target", "null:?pause=1ms", "--workload", "LGWR-LAT1,LGWR-SIZE", "--no-probe", "--results", dir];
    let folder = run(&[&own[..], &plan[..]].concat()).folder();
    as_on_a_quiet_machine(&folder);
    let report = |more: &[&str]| {
        let run = ["report", folder.to_str().unwrap(), "--with", "reference:exadata-x9m"];
        ok(&[&run[..], more].concat()).out
    };
    let text = report(&["--format", "text"]);
    let published = text.split("Published, not measured").nth(1).unwrap();
    assert!(published.contains("loadline did not make them") && published.contains("33 tests"), "{published}");
    assert!(published.contains("Exadata X9M-2 (published)"), "it stands in the tables: {published}");

    let html = report(&["--format", "html", "--output", "-"]);
    assert!(html.contains("The audit of Exadata X9M-2") && html.contains("cpu-parts"), "its audit is beside it");

    let csv = report(&["--format", "csv", "--output", "-", "--columns", "platform,target,valid,commit_throughput_tps"]);
    let published: Vec<&str> = csv.lines().filter(|l| l.contains("(published)")).collect();
    assert_eq!(published.len(), 33, "{csv}");
    assert!(published.iter().all(|l| l.contains("reference:exadata-x9m,,")), "nobody has checked them: {published:?}");
}

#[test]
fn what_is_no_reference_is_refused_with_those_that_are() {
    let refused = |args: &[&str]| {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{}", ran.said());
        ran.err
    };
    assert!(refused(&["references", "exadata-x9"]).contains("did you mean 'exadata-x9m'?"));
    let results = results();
    let own = "--jobs 1 --duration 200ms --warmup 200ms --no-probe";
    let folder = lat1("null:?pause=1ms", results.path(), own).folder();
    let said = refused(&["report", folder.to_str().unwrap(), "--with", "exadata-x9m"]);
    assert!(said.contains("write reference:ID"), "{said}");
}
