//! The container image from scratch, as an archive of an OCI image layout.

use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::archive::{File, gzip, sha256, tar};
use crate::build::Source;

/// The image: the binary, an empty `/tmp`, and a working directory for results.
///
/// `skopeo copy oci-archive:FILE docker-daemon:loadline` or `podman load` takes it.
pub(crate) fn image(source: &Source, binary: &Path) -> Result<Vec<u8>> {
    let program = File { mode: 0o755, ..File::data("usr/bin/loadline", std::fs::read(binary)?) };
    // A directory is there when a file in it is.
    let folders = ["tmp", "results"].map(|folder| File::data(format!("{folder}/.keep"), ""));
    let users = File::data("etc/passwd", "root:x:0:0:root:/results:/usr/bin/loadline\n");
    let layer = tar(&[vec![program, users], folders.into()].concat(), ".", source.epoch)?;
    let packed = gzip(&layer)?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": ["/usr/bin/loadline"], "WorkingDir": "/results", "Env": ["HOME=/results", "PATH=/usr/bin"] },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
    });
    let config = serde_json::to_vec(&config)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    });
    let manifest = serde_json::to_vec(&manifest)?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": source.version });
    let index = serde_json::to_vec(&json!({ "schemaVersion": 2, "manifests": [entry] }))?;
    let blob = |bytes: Vec<u8>| File::data(format!("blobs/sha256/{}", sha256(&bytes)), bytes);
    let layout = br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec();
    let files =
        [File::data("oci-layout", layout), File::data("index.json", index), blob(config), blob(manifest), blob(packed)];
    tar(&files, ".", source.epoch)
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}
