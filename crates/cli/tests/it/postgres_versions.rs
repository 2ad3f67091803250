//! The oldest and the newest supported PostgreSQL, from Maven's packages: the machine's own is one between them.

use std::os::unix::fs::PermissionsExt;

use crate::common::*;

const PLAN: &str = include_str!("data/group_each.toml");

/// The package of this version, fetched once into cargo's target directory.
fn package(release: &str) -> PathBuf {
    let cpu = if cfg!(target_arch = "aarch64") { "arm64v8" } else { "amd64" };
    let artifact = format!("io.zonky.test.postgres:embedded-postgres-binaries-linux-{cpu}:{release}");
    let missing = "missing: Maven; run ./test --nightly, or: apt-get install maven";
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let folder = target.join(format!("postgres-{release}"));
    let archive = || std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
    let of_tree = |path: &PathBuf| path.extension().is_some_and(|e| e == "txz");
    if !archive().any(|path| of_tree(&path)) {
        std::fs::create_dir_all(&folder).unwrap();
        let mut maven = Command::new("mvn");
        // Where it runs, Maven remembers what it has unpacked, and does not unpack it again.
        maven.current_dir(&folder).args(["-B", "-q", "dependency:unpack"]).arg(format!("-Dartifact={artifact}"));
        let got = maven.arg(format!("-DoutputDirectory={}", folder.display())).output().expect(missing);
        assert!(got.status.success(), "mvn: {}", String::from_utf8_lossy(&got.stdout));
    }
    archive().find(of_tree).unwrap()
}

fn one_workload_of_each_group_on(release: &str, version: &str) {
    let dir = results();
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    open(dir.path());
    // Not in the target directory: the server's user may have no access to it.
    let tree = dir.path().join("server");
    std::fs::create_dir(&tree).unwrap();
    let unpacked = Command::new("tar").arg("-xJf").arg(package(release)).arg("-C").arg(&tree).output().unwrap();
    assert!(unpacked.status.success(), "tar: {}", String::from_utf8_lossy(&unpacked.stderr));
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let runs = dir.path().join("runs");
    let target = format!("postgres-temp:?bin={}", tree.join("bin").display());
    let ran = on(&target, &runs, &format!("{} --no-probe", plan.display()));
    assert_eq!(sound_tests(&ran).len(), 8, "{}", ran.said());
    let manifest = manifest_of(&ran.folder());
    assert_eq!(
        (&manifest["target"]["version"], &manifest["plan"]["skipped"]),
        (&version.into(), &serde_json::json!([]))
    );
    let cleaned = command(&format!("clean --target postgres-temp: --results {}", runs.display()));
    assert!(cleaned.code == 0 && !cleaned.said().contains("removed"), "nothing was left: {}", cleaned.said());
}

#[test]
#[ignore = "nightly: Maven fetches the servers from the network"]
fn one_workload_of_each_group_on_the_oldest_and_the_newest_postgresql() {
    for (release, version) in [("14.24.0", "14.24"), ("18.6.0", "18.6")] {
        one_workload_of_each_group_on(release, version);
    }
}
