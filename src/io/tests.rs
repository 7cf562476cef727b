//! One suite for both disks: what holds on the real one holds on the simulated one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::publish::temp_path;
use super::*;
use crate::Error;

fn on_both(test: impl Fn(&dyn Disk, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    test(&RealDisk::new(), dir.path());
    let sim = SimDisk::new();
    sim.create_dir_all(Path::new("/store")).unwrap();
    test(&sim, Path::new("/store"));
}

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::Io { source, .. } => source.kind(),
        other => panic!("not an I/O error: {other}"),
    }
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let mut file = disk.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

fn get(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open_read(path).unwrap();
    read_vec_at(file.as_ref(), 0, file.len().unwrap()).unwrap()
}

#[test]
fn append_read_truncate() {
    on_both(|disk, root| {
        let path = root.join("a");
        let mut file = disk.create(&path).unwrap();
        assert!(file.is_empty());
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        assert_eq!(file.len(), 11);
        let read = disk.open_read(&path).unwrap();
        assert_eq!(read.len().unwrap(), 11);
        let mut buf = [0u8; 20];
        assert_eq!(read.read_at(6, &mut buf).unwrap(), 5);
        assert_eq!(&buf[..5], b"world");
        assert_eq!(read.read_at(11, &mut buf).unwrap(), 0);
        assert_eq!(read.read_at(u64::MAX / 2, &mut buf).unwrap(), 0);
        file.truncate(5).unwrap();
        file.append(b"!").unwrap();
        file.sync().unwrap();
        assert_eq!(file.truncate(7).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(get(disk, &path), b"hello!");
        assert_eq!(read.len().unwrap(), 6);
    });
}

#[test]
fn open_append_goes_on_at_the_end() {
    on_both(|disk, root| {
        let path = root.join("a");
        put(disk, &path, b"one");
        let mut file = disk.open_append(&path).unwrap();
        assert_eq!(file.len(), 3);
        file.append(b"two").unwrap();
        assert_eq!(get(disk, &path), b"onetwo");
    });
}

#[test]
fn exact_reads_are_checked_against_the_end() {
    on_both(|disk, root| {
        let path = root.join("a");
        put(disk, &path, b"0123456789");
        let file = disk.open_read(&path).unwrap();
        assert_eq!(read_vec_at(file.as_ref(), 3, 4).unwrap(), b"3456");
        assert_eq!(read_vec_at(file.as_ref(), 10, 0).unwrap(), b"");
        for (offset, len) in [(0, 11), (10, 1), (u64::MAX, 2), (2, u64::MAX), (0, 1 << 62)] {
            let error = read_vec_at(file.as_ref(), offset, len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{offset} {len}");
        }
        let mut buf = [0u8; 4];
        let error = read_exact_at(file.as_ref(), 8, &mut buf).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn names_are_refused_with_the_right_kind() {
    on_both(|disk, root| {
        let (a, b, missing) = (root.join("a"), root.join("b"), root.join("no/such"));
        put(disk, &a, b"1");
        put(disk, &b, b"2");
        assert_eq!(kind(&disk.create(&a).unwrap_err()), ErrorKind::AlreadyExists);
        assert_eq!(kind(&disk.create(&missing).unwrap_err()), ErrorKind::NotFound);
        assert!(is_not_found(&disk.open_read(&missing).unwrap_err()));
        assert!(is_not_found(&disk.open_append(&root.join("c")).unwrap_err()));
        assert!(is_not_found(&disk.remove_file(&root.join("c")).unwrap_err()));
        assert!(is_not_found(&disk.rename(&root.join("c"), &a).unwrap_err()));
        assert!(is_not_found(&disk.list(&missing).unwrap_err()));
        assert_eq!(kind(&disk.open_read(root).unwrap_err()), ErrorKind::IsADirectory);
        assert_eq!(kind(&disk.hard_link(&a, &b).unwrap_err()), ErrorKind::AlreadyExists);
        assert_eq!(get(disk, &a), b"1");
        match disk.create(&a).unwrap_err() {
            Error::Io { action, path, .. } => assert_eq!((action, path), ("create", a)),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn rename_replaces_and_open_files_live_on() {
    on_both(|disk, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        put(disk, &a, b"new");
        put(disk, &b, b"old");
        let old = disk.open_read(&b).unwrap();
        disk.rename(&a, &b).unwrap();
        disk.sync_dir(root).unwrap();
        assert_eq!(get(disk, &b), b"new");
        assert!(is_not_found(&disk.open_read(&a).unwrap_err()));
        assert_eq!(read_vec_at(old.as_ref(), 0, 3).unwrap(), b"old");
        let new = disk.open_read(&b).unwrap();
        disk.remove_file(&b).unwrap();
        assert_eq!(read_vec_at(new.as_ref(), 0, 3).unwrap(), b"new");
    });
}

#[test]
fn hard_links_share_bytes() {
    on_both(|disk, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        put(disk, &a, b"x");
        disk.hard_link(&a, &b).unwrap();
        disk.rename(&a, &b).unwrap();
        assert_eq!(disk.list(root).unwrap().len(), 2, "names of one file do not replace it");
        disk.remove_file(&a).unwrap();
        assert_eq!(get(disk, &b), b"x");
    });
}

#[test]
fn directories_are_listed_sorted() {
    on_both(|disk, root| {
        disk.create_dir_all(&root.join("d/e/f")).unwrap();
        disk.create_dir_all(&root.join("d/e/f")).unwrap();
        put(disk, &root.join("z"), b"12");
        put(disk, &root.join("b"), b"");
        put(disk, &root.join("d/inner"), b"1");
        let entry = |name: &str, len, is_dir| DirEntry { name: name.into(), len, is_dir };
        let listed = disk.list(root).unwrap();
        assert_eq!(listed, [entry("b", 0, false), entry("d", 0, true), entry("z", 2, false)]);
        let listed = disk.list(&root.join("d")).unwrap();
        assert_eq!(listed, [entry("e", 0, true), entry("inner", 1, false)]);
        assert!(disk.remove_dir(&root.join("d")).is_err());
        disk.remove_dir(&root.join("d/e/f")).unwrap();
        assert_eq!(disk.list(&root.join("d/e")).unwrap(), []);
        assert!(disk.create_dir_all(&root.join("z/below")).is_err());
    });
}

#[test]
fn lock_names_its_holder_and_stays() {
    on_both(|disk, root| {
        let path = root.join("LOCK");
        let guard = disk.lock(&path).unwrap();
        match disk.lock(&path).unwrap_err() {
            Error::Locked { path, holder } => {
                assert_eq!(path, root);
                if cfg!(unix) {
                    assert_eq!(holder, format!("pid {}", std::process::id()));
                }
            }
            other => panic!("{other}"),
        }
        drop(guard);
        let again = disk.lock(&path).unwrap();
        drop(again);
        assert!(disk.list(root).unwrap().iter().any(|e| e.name == "LOCK"));
    });
}

#[test]
fn publish_shows_whole_files_only() {
    on_both(|disk, root| {
        let path = root.join("file");
        put(disk, &temp_path(&path), b"left by an earlier attempt");
        let given = publish(disk, &path, Fsync::Now, |file| {
            file.append(b"one").unwrap();
            Ok(file.len())
        });
        assert_eq!(given.unwrap(), 3);
        assert_eq!(get(disk, &path), b"one");
        let failed: crate::Result<()> = publish(disk, &path, Fsync::Now, |file| {
            file.append(b"two").unwrap();
            Err(Error::Cancelled)
        });
        assert!(matches!(failed, Err(Error::Cancelled)));
        assert_eq!(get(disk, &path), b"one");
        assert_eq!(disk.list(root).unwrap().len(), 1, "no temporary file stays");
    });
}

#[test]
fn free_space_is_known() {
    on_both(|disk, root| assert!(disk.free_space(root).unwrap() > 0));
}

#[test]
fn memory_file_reads_like_a_file() {
    let file = MemoryFile::new(b"0123456789".to_vec());
    assert_eq!(read_vec_at(&file, 2, 3).unwrap(), b"234");
    assert_eq!(read_vec_at(&file, 8, 3).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(file.bytes().len(), 10);
}

#[test]
fn paths_are_taken_apart() {
    assert_eq!(parent_dir(Path::new("a")), PathBuf::from("."));
    assert_eq!(parent_dir(Path::new("/s/a")), PathBuf::from("/s"));
    assert_eq!(file_name(Path::new("/s/a.part")), "a.part");
}

mod equal {
    //! Random operations have the same outcome on both disks.
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Create(u8),
        Append(u8, Vec<u8>),
        Truncate(u8, u8),
        Rename(u8, u8),
        Link(u8, u8),
        Remove(u8),
        MakeDir(u8),
        RemoveDir(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = || 0u8..6;
        prop_oneof![
            name().prop_map(Step::Create),
            (name(), prop::collection::vec(any::<u8>(), 0..9))
                .prop_map(|(n, b)| Step::Append(n, b)),
            (name(), 0u8..9).prop_map(|(n, l)| Step::Truncate(n, l)),
            (name(), name()).prop_map(|(a, b)| Step::Rename(a, b)),
            (name(), name()).prop_map(|(a, b)| Step::Link(a, b)),
            name().prop_map(Step::Remove),
            (0u8..2).prop_map(Step::MakeDir),
            (0u8..2).prop_map(Step::RemoveDir),
        ]
    }

    /// Three files in each of two directories.
    fn path(root: &Path, n: u8) -> PathBuf {
        root.join(format!("d{}", n / 3)).join(format!("f{}", n % 3))
    }

    fn run(disk: &dyn Disk, root: &Path, step: &Step) -> bool {
        match step {
            Step::Create(n) => disk.create(&path(root, *n)).is_ok(),
            Step::Append(n, bytes) => disk
                .open_append(&path(root, *n))
                .is_ok_and(|mut file| file.append(bytes).and_then(|()| file.sync()).is_ok()),
            Step::Truncate(n, len) => disk
                .open_append(&path(root, *n))
                .is_ok_and(|mut file| file.truncate(u64::from(*len)).is_ok()),
            Step::Rename(a, b) => disk.rename(&path(root, *a), &path(root, *b)).is_ok(),
            Step::Link(a, b) => disk.hard_link(&path(root, *a), &path(root, *b)).is_ok(),
            Step::Remove(n) => disk.remove_file(&path(root, *n)).is_ok(),
            Step::MakeDir(d) => disk.create_dir_all(&root.join(format!("d{d}"))).is_ok(),
            Step::RemoveDir(d) => disk.remove_dir(&root.join(format!("d{d}"))).is_ok(),
        }
    }

    fn contents(disk: &dyn Disk, root: &Path) -> Vec<(u8, Option<Vec<u8>>)> {
        (0..6)
            .map(|n| {
                let file = disk.open_read(&path(root, n)).ok();
                (n, file.map(|f| read_vec_at(f.as_ref(), 0, f.len().unwrap()).unwrap()))
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn same_outcome(steps in prop::collection::vec(step(), 1..40)) {
            let dir = tempfile::tempdir().unwrap();
            let (real, sim) = (RealDisk::new(), SimDisk::new());
            let sim_root = Path::new("/");
            for step in &steps {
                let outcome = (run(&real, dir.path(), step), run(&sim, sim_root, step));
                prop_assert_eq!(outcome.0, outcome.1, "{:?}", step);
                for d in ["", "d0", "d1"] {
                    let lists = (real.list(&dir.path().join(d)), sim.list(&sim_root.join(d)));
                    prop_assert_eq!(lists.0.ok(), lists.1.ok());
                }
                prop_assert_eq!(contents(&real, dir.path()), contents(&sim, sim_root));
            }
        }
    }
}
