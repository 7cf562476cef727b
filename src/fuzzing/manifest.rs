//! Manifests: a file as it is, or records of any payloads under right checksums.

use std::path::Path;
use std::sync::Arc;

use super::input::{Input, put_bytes};
use super::life::{options, root};
use super::rows::is_typed;
use crate::Error;
use crate::io::{Disk, SimDisk};
use crate::manifest::{Manifest, ManifestState, fuzz};

/// Mode u8: 0 a file of generation 1, else payloads behind their lengths, synced or not.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let disk = Arc::new(SimDisk::new());
    let file = if input.u8().is_multiple_of(2) {
        input.rest().to_vec()
    } else {
        let mut payloads = Vec::new();
        while !input.is_empty() {
            let synced = input.u8().is_multiple_of(2);
            payloads.push((synced, input.bytes()));
        }
        fuzz::file(1, Default::default(), &payloads)
    };
    disk.write_file(root().join("MANIFEST-1"), &file);
    open(&disk);
    // A store on top of it: parts that are listed and not there are holes.
    match options(&disk).open(root()) {
        Ok(store) => {
            store.stats();
            // Holes fail the query; nothing else may.
            if let Ok(rows) = store.query("*") {
                rows.for_each(|row| {
                    let _ = row.map_err(|e| assert!(is_typed(&e), "{e}"));
                });
            }
            store.close().expect("a store on a good disk closes");
        }
        Err(e) => assert!(is_opening(&e), "{e}"),
    }
}

fn is_opening(error: &Error) -> bool {
    matches!(error, Error::Corrupted(_) | Error::Unsupported { .. } | Error::NotAStore { .. })
}

/// Opens the manifest for writing; what it then says is what the next opening says.
fn open(disk: &Arc<SimDisk>) {
    let disk = Arc::new(disk.fork());
    let dyn_disk = || Arc::clone(&disk) as Arc<dyn Disk>;
    let mut manifest = match Manifest::open(dyn_disk(), &root()) {
        Ok((manifest, _)) => manifest,
        Err(e) => return assert!(is_opening(&e), "{e}"),
    };
    let mut again = ManifestState::new(manifest.state().store_id());
    again.apply(&manifest.state().image()).expect("a state is an edit of an empty one");
    assert_eq!(&again, manifest.state(), "a state comes back from its image");
    if manifest.reserve_ids().is_err() {
        // Numbers at the end of their range.
        return;
    }
    let before = manifest.state().clone();
    drop(manifest);
    let (next, report) = Manifest::open(dyn_disk(), &root()).expect("a manifest that was written");
    assert_eq!(next.state(), &before, "what was written is read");
    assert_eq!(report.fallback, None, "the second opening mends nothing");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let disk = Arc::new(SimDisk::new());
    super::life::write_some_rows(&disk);
    let manifest = |path: &Path| path.to_string_lossy().contains("MANIFEST-");
    let files = disk.files().into_iter().filter(|path| manifest(path));
    let mut out = Vec::new();
    for path in files {
        let bytes = disk.read_file(&path).expect("a file that is listed");
        let mut seed = vec![1];
        for payload in fuzz::payloads(&bytes) {
            seed.push(0);
            put_bytes(&mut seed, &payload);
        }
        out.push(seed);
        out.push([&[0][..], &bytes].concat());
    }
    out
}
