//! Links Debian's RocksDB where it is installed: compiling it takes many minutes.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(rocksdb)");
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    let named = std::env::var("ROCKSDB_LIB_DIR").ok();
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let places =
        [format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib64".into(), "/usr/lib".into(), "/usr/local/lib".into()];
    for place in named.iter().chain(&places) {
        println!("cargo::rerun-if-changed={place}/librocksdb.so");
        if Path::new(place).join("librocksdb.so").exists() {
            println!("cargo::rustc-cfg=rocksdb");
            println!("cargo::rustc-link-search=native={place}");
            println!("cargo::rustc-link-lib=dylib=rocksdb");
            return;
        }
    }
}
