//! The container image from scratch, as an archive of an OCI image layout.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::archive::{gzip, sha256, tar};
use crate::build::Source;

/// The image: the binary, an empty `/tmp`, and a working directory for results.
///
/// `skopeo copy oci-archive:FILE docker-daemon:loadline` or `podman load` takes it.
pub(crate) fn image(source: &Source, binary: &Path) -> Result<Vec<u8>> {
    let root = tempfile::tempdir()?;
    for folder in ["usr/bin", "etc", "tmp", "results"] {
        fs::create_dir_all(root.path().join(folder))?;
    }
    fs::copy(binary, root.path().join("usr/bin/loadline"))?;
    fs::write(root.path().join("etc/passwd"), "root:x:0:0:root:/results:/usr/bin/loadline\n")?;
    let layer = tar(source, root.path(), ".")?;
    let packed = gzip(&layer)?;
    let config = serde_json::to_vec(&json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": ["/usr/bin/loadline"], "WorkingDir": "/results", "Env": ["HOME=/results", "PATH=/usr/bin"] },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
    }))?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    }))?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": source.version });
    let layout = tempfile::tempdir()?;
    let blobs = layout.path().join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    for blob in [config, manifest, packed] {
        fs::write(blobs.join(sha256(&blob)), &blob)?;
    }
    fs::write(layout.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    fs::write(layout.path().join("index.json"), serde_json::to_vec(&index)?)?;
    tar(source, layout.path(), ".")
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}
