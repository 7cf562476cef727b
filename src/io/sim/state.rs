//! The state of a simulated disk: files, names, what of both is durable, faults to come.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Fault, Op, OpKind};
use crate::io::disk::{DirEntry, file_name};

/// The path without `.` components and with `..` resolved lexically.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The directory of a normal path; the empty path is the directory `.`.
pub(super) fn dir_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// When a fault strikes.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    Once(u64, Fault),
    From(u64, Fault),
    Next(OpKind, String, Fault),
}

/// The bytes of a file: all of them, and which of them are durable.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    /// The bytes as readers see them.
    pub(super) live: Vec<u8>,
    /// The durable bytes are the first `synced` of `live`, then `cut_off`.
    pub(super) synced: usize,
    /// Durable bytes that a truncation not yet synced took away.
    pub(super) cut_off: Vec<u8>,
    /// Start offsets of the appends since the last sync, rising.
    pub(super) writes: Vec<usize>,
    /// Ranges that a failed sync left behind: clean in the cache, never written.
    pub(super) lost: Vec<(usize, usize)>,
}

impl Inode {
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.writes.push(self.live.len());
        self.live.extend_from_slice(bytes);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if let Some(taken) = self.live.get(len..self.synced) {
            let mut cut_off = taken.to_vec();
            cut_off.append(&mut self.cut_off);
            self.cut_off = cut_off;
            self.synced = len;
        }
        self.live.truncate(len);
        self.writes.retain(|&start| start < len);
        self.lost.retain_mut(|(start, end)| {
            *end = (*end).min(len);
            start < end
        });
    }

    pub(super) fn sync(&mut self) {
        self.synced = self.live.len();
        self.cut_off.clear();
        self.writes.clear();
    }

    pub(super) fn fail_sync(&mut self) {
        if self.synced < self.live.len() {
            self.lost.push((self.synced, self.live.len()));
        }
    }
}

/// A change of names that a crash keeps or loses as a whole.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    pub(super) dir: PathBuf,
    pub(super) sets: Vec<(PathBuf, Option<u64>)>,
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        for (path, id) in &self.sets {
            match id {
                Some(id) => names.insert(path.clone(), *id),
                None => names.remove(path),
            };
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) inodes: HashMap<u64, Inode>,
    pub(super) next_id: u64,
    pub(super) names: BTreeMap<PathBuf, u64>,
    pub(super) durable_names: BTreeMap<PathBuf, u64>,
    /// Changes from `durable_names` to `names`, oldest first.
    pub(super) pending: Vec<NameChange>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) locks: HashSet<PathBuf>,
    pub(super) rules: Vec<Rule>,
    pub(super) trace: Vec<Op>,
    pub(super) crashed: bool,
    /// Whether the last operation was interrupted.
    pub(super) interrupted: bool,
    pub(super) capacity: Option<u64>,
}

fn crashed() -> io::Error {
    io::Error::other("the simulated machine has stopped")
}

impl State {
    pub(super) fn new() -> State {
        State {
            inodes: HashMap::new(),
            next_id: 1,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            dirs: BTreeSet::from([PathBuf::new(), PathBuf::from("/")]),
            locks: HashSet::new(),
            rules: Vec::new(),
            trace: Vec::new(),
            crashed: false,
            interrupted: false,
            capacity: None,
        }
    }

    /// The files as they are, without what belonged to a process.
    pub(super) fn without_process(&self) -> State {
        State {
            inodes: self.inodes.clone(),
            next_id: self.next_id,
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            pending: self.pending.clone(),
            dirs: self.dirs.clone(),
            capacity: self.capacity,
            ..State::new()
        }
    }

    /// Counts an operation; the fault that it meets.
    pub(super) fn meet(&mut self, kind: OpKind, path: &Path, len: u64) -> Option<Fault> {
        let number = self.trace.len() as u64;
        self.trace.push(Op { kind, path: path.to_path_buf(), len });
        if self.crashed {
            return Some(Fault::Crash);
        }
        let was_interrupted = std::mem::take(&mut self.interrupted);
        let text = path.to_string_lossy();
        let hit = self.rules.iter().position(|rule| match rule {
            Rule::Once(at, _) => *at == number,
            Rule::From(at, _) => *at <= number,
            Rule::Next(of, part, _) => *of == kind && text.contains(part.as_str()),
        })?;
        let fault = match self.rules.get(hit)? {
            Rule::Once(_, fault) | Rule::From(_, fault) | Rule::Next(_, _, fault) => *fault,
        };
        if matches!(self.rules.get(hit), Some(Rule::Next(..))) {
            self.rules.remove(hit);
        }
        self.crashed |= fault == Fault::Crash;
        self.interrupted = fault == Fault::Interrupted;
        if was_interrupted && self.interrupted {
            // Whoever repeats an interrupted operation gets through.
            self.interrupted = false;
            return None;
        }
        Some(fault)
    }

    /// Counts an operation that a fault can only prevent.
    pub(super) fn begin(&mut self, kind: OpKind, path: &Path, len: u64) -> io::Result<()> {
        match self.meet(kind, path, len) {
            None | Some(Fault::Short) => Ok(()),
            Some(fault) => Err(error_of(fault)),
        }
    }

    /// Bytes of all files that have a name.
    pub(super) fn used(&self) -> u64 {
        let ids: BTreeSet<u64> = self.names.values().copied().collect();
        ids.iter().filter_map(|id| self.inodes.get(id)).map(|inode| inode.live.len() as u64).sum()
    }

    pub(super) fn has_dir(&self, path: &Path) -> bool {
        self.dirs.contains(path)
    }

    fn need_dir_of(&self, path: &Path) -> io::Result<()> {
        if self.dirs.contains(&dir_of(path)) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Changes names now and, once the directories are synced, durably.
    fn change(&mut self, dir: PathBuf, sets: Vec<(PathBuf, Option<u64>)>) {
        let change = NameChange { dir, sets };
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.need_dir_of(path)?;
        if self.names.contains_key(path) || self.dirs.contains(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = self.next_id;
        self.next_id += 1;
        self.inodes.insert(id, Inode::default());
        self.change(dir_of(path), vec![(path.to_path_buf(), Some(id))]);
        Ok(id)
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<(u64, u64)> {
        if self.dirs.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let id = *self.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let inode = self.inodes.get(&id).ok_or(io::ErrorKind::NotFound)?;
        Ok((id, inode.live.len() as u64))
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = *self.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        self.need_dir_of(to)?;
        if self.dirs.contains(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // Two names of one file: the system calls it done, and both names stay.
        if from == to || self.names.get(to) == Some(&id) {
            return Ok(());
        }
        let (linked, unlinked) = ((to.to_path_buf(), Some(id)), (from.to_path_buf(), None));
        if dir_of(from) == dir_of(to) {
            self.change(dir_of(to), vec![linked, unlinked]);
        } else {
            self.change(dir_of(to), vec![linked]);
            self.change(dir_of(from), vec![unlinked]);
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = *self.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        self.need_dir_of(to)?;
        if self.names.contains_key(to) || self.dirs.contains(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(dir_of(to), vec![(to.to_path_buf(), Some(id))]);
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        if !self.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(dir_of(path), vec![(path.to_path_buf(), None)]);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        if !self.dirs.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = |p: &PathBuf| p != path && dir_of(p) == path;
        if self.names.keys().any(inside) || self.dirs.iter().any(inside) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.dirs.remove(path);
        Ok(())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        if path.ancestors().any(|p| self.names.contains_key(p)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.dirs.extend(path.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        if !self.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = |p: &&PathBuf| p.as_path() != dir && dir_of(p) == dir;
        let dirs = self.dirs.iter().filter(inside).filter(|p| !p.as_os_str().is_empty());
        let mut entries: Vec<DirEntry> =
            dirs.map(|p| DirEntry { name: file_name(p), len: 0, is_dir: true }).collect();
        for (path, id) in self.names.iter().filter(|(p, _)| inside(p)) {
            let len = self.inodes.get(id).map_or(0, |inode| inode.live.len() as u64);
            entries.push(DirEntry { name: file_name(path), len, is_dir: false });
        }
        entries.retain(|e| !e.name.is_empty());
        entries.sort();
        Ok(entries)
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        if !self.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (synced, waiting): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|change| change.dir == dir);
        synced.iter().for_each(|change| change.apply(&mut self.durable_names));
        self.pending = waiting;
        Ok(())
    }

    /// Whether the lock could be taken.
    pub(super) fn lock(&mut self, path: &Path) -> io::Result<bool> {
        if self.locks.contains(path) {
            return Ok(false);
        }
        let id = match self.names.get(path) {
            Some(id) => *id,
            None => self.create(path)?,
        };
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.truncate(0);
            inode.append(format!("pid {}", std::process::id()).as_bytes());
        }
        self.locks.insert(path.to_path_buf());
        Ok(true)
    }

    /// Puts a durable file in place, with its directories.
    pub(super) fn plant(&mut self, path: &Path, bytes: &[u8]) {
        let id = self.next_id;
        self.next_id += 1;
        let mut inode = Inode::default();
        inode.append(bytes);
        inode.sync();
        self.inodes.insert(id, inode);
        self.dirs.extend(dir_of(path).ancestors().map(Path::to_path_buf));
        self.names.insert(path.to_path_buf(), id);
        self.durable_names.insert(path.to_path_buf(), id);
    }

    /// Changes the bytes of a file where they are stored; what `change` says, `false` without
    /// such a file.
    pub(super) fn damage(
        &mut self,
        path: &Path,
        change: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let id = self.names.get(path).copied();
        let Some(inode) = id.and_then(|id| self.inodes.get_mut(&id)) else { return false };
        let changed = change(&mut inode.live);
        inode.lost.clear();
        inode.sync();
        changed
    }
}

/// What the system says of a fault.
pub(super) fn error_of(fault: Fault) -> io::Error {
    match fault {
        Fault::Io => io::Error::other("simulated I/O error"),
        Fault::NoSpace => io::ErrorKind::StorageFull.into(),
        Fault::Short => io::ErrorKind::WriteZero.into(),
        Fault::Interrupted => io::ErrorKind::Interrupted.into(),
        Fault::Crash => crashed(),
    }
}
