//! What a crash leaves of a simulated disk.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::state::{Inode, State, dir_of};

/// What happens to bytes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDamage {
    /// All are gone; a file that was never synced is empty.
    Lose,
    /// All are there.
    Keep,
    /// A prefix of random length is there.
    Prefix,
    /// All appends but the last are there, and of the last a random part.
    Torn,
    /// The length is there, but from a random offset on the bytes are random.
    Garbage,
    /// The length is there, but from a random offset on the bytes are zero.
    Zeros,
    /// The length is there; each sector of 512 bytes was written or is zero.
    Sectors,
}

/// What happens to names that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryDamage {
    /// All creations, renames and removals are undone.
    Lose,
    /// All are there.
    Keep,
    /// The first few are there, a random number of them.
    Prefix,
    /// Each is there or not by chance (a rename within a directory as a whole).
    Subset,
}

/// What a crash does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashModel {
    /// To bytes.
    pub data: DataDamage,
    /// To names.
    pub entries: EntryDamage,
}

impl CrashModel {
    /// Nothing is lost: the death of a process, whose writes the system carries on.
    pub const KEEP_ALL: CrashModel =
        CrashModel { data: DataDamage::Keep, entries: EntryDamage::Keep };
    /// Everything that was not synced is lost.
    pub const LOSE_ALL: CrashModel =
        CrashModel { data: DataDamage::Lose, entries: EntryDamage::Lose };

    /// Every combination of the two kinds of damage.
    pub fn all() -> Vec<CrashModel> {
        use DataDamage as D;
        use EntryDamage as E;
        let data = [D::Lose, D::Keep, D::Prefix, D::Torn, D::Garbage, D::Zeros, D::Sectors];
        let entries = [E::Lose, E::Keep, E::Prefix, E::Subset];
        data.iter()
            .flat_map(|&data| entries.iter().map(move |&entries| CrashModel { data, entries }))
            .collect()
    }
}

/// The bytes of a sector, which a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A small deterministic generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `lo` to `hi`, both included; `lo <= hi`.
    fn between(&mut self, lo: usize, hi: usize) -> usize {
        let span = (hi - lo) as u64 + 1;
        lo + usize::try_from(self.next() % span).unwrap_or(0)
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// The disk that a reboot finds.
pub(super) fn reboot(state: &State, model: CrashModel, seed: u64) -> State {
    let mut rng = Rng(seed ^ 0x6c6f_676c_6974_6800);
    let found = names_after(state, model.entries, &mut rng);
    let mut after = State::new();
    after.capacity = state.capacity;
    after.next_id = state.next_id;
    after.dirs.clone_from(&state.dirs);
    let mut inodes = HashMap::new();
    for (path, id) in &found {
        // A directory whose removal came before that of its files was durable is back.
        after.dirs.extend(dir_of(path).ancestors().map(Path::to_path_buf));
        if let Some(inode) = state.inodes.get(id).filter(|_| !inodes.contains_key(id)) {
            let mut fresh = Inode::default();
            fresh.append(&bytes_after(inode, model.data, &mut rng));
            fresh.sync();
            inodes.insert(*id, fresh);
        }
    }
    after.inodes = inodes;
    after.durable_names.clone_from(&found);
    after.names = found;
    after
}

fn names_after(state: &State, damage: EntryDamage, rng: &mut Rng) -> BTreeMap<PathBuf, u64> {
    let mut names = state.durable_names.clone();
    let kept = match damage {
        EntryDamage::Lose => 0,
        EntryDamage::Keep | EntryDamage::Subset => state.pending.len(),
        EntryDamage::Prefix => rng.between(0, state.pending.len()),
    };
    for change in state.pending.iter().take(kept) {
        if damage != EntryDamage::Subset || rng.coin() {
            change.apply(&mut names);
        }
    }
    names
}

fn bytes_after(inode: &Inode, damage: DataDamage, rng: &mut Rng) -> Vec<u8> {
    if damage == DataDamage::Keep {
        return inode.live.clone();
    }
    let mut bytes = inode.live.clone();
    for &(start, end) in &inode.lost {
        bytes.get_mut(start..end).unwrap_or(&mut []).fill(0);
    }
    let undo_cut = !inode.cut_off.is_empty() && rng.coin();
    if damage == DataDamage::Lose || undo_cut {
        bytes.truncate(inode.synced);
        bytes.extend_from_slice(&inode.cut_off);
        return bytes;
    }
    let whole = bytes.len();
    match damage {
        DataDamage::Lose | DataDamage::Keep => {}
        DataDamage::Prefix => bytes.truncate(rng.between(inode.synced, whole)),
        DataDamage::Torn => {
            let last = inode.writes.last().copied().unwrap_or(whole);
            bytes.truncate(rng.between(last, whole));
        }
        DataDamage::Garbage | DataDamage::Zeros => {
            let from = rng.between(inode.synced, whole);
            for byte in bytes.iter_mut().skip(from) {
                *byte = if damage == DataDamage::Zeros { 0 } else { rng.byte() };
            }
        }
        DataDamage::Sectors => {
            let mut at = inode.synced;
            while at < whole {
                let end = ((at / SECTOR + 1) * SECTOR).min(whole);
                if rng.coin() {
                    bytes.get_mut(at..end).unwrap_or(&mut []).fill(0);
                }
                at = end;
            }
        }
    }
    bytes
}
