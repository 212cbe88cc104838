//! The files of a program: which is which, and which of their pages were in memory before the recording began.

use std::collections::{BTreeMap, BTreeSet};

use mm::vm::{FileKind, MemoryFile};
use trace::NameId;

use super::read_ahead::ReadAhead;

/// A file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedFile {
    /// Its name, as recorded.
    pub name: String,
    /// What its pages are.
    pub kind: FileKind,
    /// Where it is, if it is in memory.
    pub memory: MemoryFile,
    /// Pages that were in memory before: ranges of the first and how many, ascending.
    pub before: Vec<(u32, u32)>,
    /// Its pages, as far as any of them was seen: it may be longer.
    pub pages: u32,
    /// Pages that its device reads ahead at most, where that is known.
    pub read_ahead: Option<u32>,
}

/// The files seen so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The recording's names.
    names: Vec<String>,
    /// How names of files begin whose file systems are in memory: `0:24:`.
    in_memory: Vec<String>,
    read_ahead: ReadAhead,
    /// By the first word of their names.
    by_key: BTreeMap<String, u32>,
    by_name: BTreeMap<NameId, u32>,
    all: Vec<Seen>,
}

/// What is known of a file.
#[derive(Debug)]
struct Seen {
    name: String,
    kind: FileKind,
    /// Pages that were used without having come in first.
    before: BTreeSet<u32>,
    /// Pages beside those that a fault was seen on: there too, unless they are seen to come later.
    guessed: BTreeSet<u32>,
    /// Pages that were written to without having come in: there too, unless they come in next, for the event of a write comes before
    /// those of the pages that it needs.
    written: BTreeSet<u32>,
    /// Pages that came in.
    came: BTreeSet<u32>,
    /// Its pages, as far as is known.
    pages: u32,
}

impl Files {
    /// None yet, of a recording with these names.
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, in_memory: vec![OWN_TMPFS.to_owned(), FIRST_ROOT.to_owned()], ..Self::default() }
    }

    /// Files on these devices, such as `0:24`, are in memory.
    pub(super) fn lie_in_memory(&mut self, devices: &[String]) {
        self.in_memory.extend(devices.iter().map(|device| format!("{device}:")));
    }

    /// Devices read ahead as these settings say, files of the recorded machine by path.
    pub(super) fn are_read_ahead(&mut self, settings: &BTreeMap<String, String>) {
        self.read_ahead = ReadAhead::of(settings);
    }

    /// What the pages of a file with this name are.
    fn kind(&self, name: &str) -> FileKind {
        if self.in_memory.iter().any(|device| name.starts_with(device)) {
            return FileKind::Memory;
        }
        let path = name.split_once(' ').map_or("", |(_, path)| path);
        let in_memory = ["/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"];
        if in_memory.iter().any(|start| path.starts_with(start)) { FileKind::Memory } else { FileKind::Disk }
    }

    /// The file with this name; `None` for [`NameId::NONE`] and one that the recording does not have.
    pub(super) fn number(&mut self, id: NameId) -> Option<u32> {
        if let Some(number) = self.by_name.get(&id) {
            return Some(*number);
        }
        let name = self.names.get(id.0 as usize).filter(|name| !name.is_empty())?.clone();
        let key = name.split(' ').next().unwrap_or_default().to_owned();
        let next = self.all.len() as u32;
        let number = *self.by_key.entry(key).or_insert(next);
        let kind = self.kind(&name);
        if number == next {
            self.all.push(Seen::new(name, kind));
        } else {
            self.all[number as usize].learn((&name, kind));
        }
        self.by_name.insert(id, number);
        Some(number)
    }

    /// What the file of this number is called, as far as is known yet.
    pub(super) fn name(&self, file: u32) -> Option<&str> {
        self.all.get(file as usize).map(|seen| seen.name.as_str())
    }

    /// A file that stands for shared memory without a name.
    pub(super) fn shared_memory(&mut self) -> u32 {
        self.all.push(Seen::new(SHARED_MEMORY.to_owned(), FileKind::Memory));
        self.all.len() as u32 - 1
    }

    /// `pages` of a file from `first` on are mapped: one in memory has them all, whether or not they are used.
    pub(super) fn mapped(&mut self, file: u32, first: u32, pages: u32) {
        let seen = &mut self.all[file as usize];
        if seen.kind == FileKind::Memory {
            seen.reach(first, pages);
        }
    }

    /// `pages` of a file from `first` on come into memory.
    pub(super) fn come(&mut self, file: u32, first: u32, pages: u32) {
        let seen = &mut self.all[file as usize];
        seen.reach(first, pages);
        for page in first..first.saturating_add(pages) {
            seen.guessed.remove(&page);
            seen.written.remove(&page);
            seen.came.insert(page);
        }
    }

    /// Whether a fault on the file may have its page read.
    pub(super) fn may_come(&self, file: u32) -> bool {
        self.all[file as usize].kind == FileKind::Disk
    }

    /// They are used: those that did not come before were there.
    pub(super) fn used(&mut self, file: u32, first: u32, pages: u32) {
        let seen = &mut self.all[file as usize];
        seen.reach(first, pages);
        let is_kept = seen.is_kept();
        let Seen { before, came, .. } = seen;
        if is_kept {
            before.extend((first..first.saturating_add(pages)).filter(|page| !came.contains(page)));
        }
    }

    /// They are written to. How many of a file in memory came into being with that.
    pub(super) fn written(&mut self, file: u32, first: u32, pages: u32) -> u32 {
        let seen = &mut self.all[file as usize];
        seen.reach(first, pages);
        let all = first..first.saturating_add(pages);
        if seen.kind == FileKind::Disk {
            let Seen { written, came, .. } = seen;
            written.extend(all.filter(|page| !came.contains(page)));
            return 0;
        }
        all.map(|page| u32::from(seen.came.insert(page))).sum()
    }

    /// They are cut off, used before.
    pub(super) fn cut(&mut self, file: u32, first: u32, pages: u32) {
        self.used(file, first, pages);
        let seen = &mut self.all[file as usize];
        if seen.kind == FileKind::Memory {
            for page in first..first.saturating_add(pages) {
                seen.came.remove(&page);
            }
        }
    }

    /// They are near one that a fault was on.
    pub(super) fn guess(&mut self, file: u32, first: u32, pages: u32) {
        let seen = &mut self.all[file as usize];
        let is_kept = seen.is_kept();
        let Seen { guessed, came, .. } = seen;
        if is_kept {
            guessed.extend((first..first.saturating_add(pages)).filter(|page| !came.contains(page)));
        }
    }

    /// All of them.
    pub(super) fn finish(self) -> Vec<RecordedFile> {
        let Self { all, read_ahead, .. } = self;
        let done = |mut seen: Seen| {
            seen.before.append(&mut seen.guessed);
            seen.before.append(&mut seen.written);
            let read_ahead = read_ahead.pages_of(&seen.name);
            RecordedFile {
                kind: seen.kind,
                memory: memory_of(&seen.name),
                before: runs(&seen.before),
                pages: seen.pages,
                read_ahead,
                name: seen.name,
            }
        };
        all.into_iter().map(done).collect()
    }
}

impl Seen {
    fn new(name: String, kind: FileKind) -> Self {
        let [before, guessed, written, came] = <[BTreeSet<u32>; 4]>::default();
        Self { name, kind, before, guessed, written, came, pages: 0 }
    }

    /// It has `pages` from `first` on.
    fn reach(&mut self, first: u32, pages: u32) {
        self.pages = self.pages.max(first.saturating_add(pages));
    }

    /// Whether its pages were there before the program: on a disk, or unpacked into memory at boot.
    fn is_kept(&self) -> bool {
        self.kind == FileKind::Disk || self.name.starts_with(FIRST_ROOT)
    }

    /// A mapping knows its path, an event of the page cache does not.
    fn learn(&mut self, (name, kind): (&str, FileKind)) {
        if name.len() > self.name.len() {
            name.clone_into(&mut self.name);
            self.kind = kind;
        }
    }
}

/// Files of the kernel's own tmpfs, and of the first root, which is an initramfs: the first two devices without a disk that a kernel
/// makes (`mnt_init`).
const OWN_TMPFS: &str = "0:1:";
const FIRST_ROOT: &str = "0:2:";

/// What shared memory without a name is called.
const SHARED_MEMORY: &str = "shared memory";

/// Where a file in memory with this name is.
fn memory_of(name: &str) -> MemoryFile {
    let path = name.split_once(' ').map_or("", |(_, path)| path);
    if name == SHARED_MEMORY || path.starts_with("/dev/zero") {
        MemoryFile::Unnamed
    } else if name.starts_with(OWN_TMPFS) || path.starts_with("/memfd:") || path.starts_with("/SYSV") {
        MemoryFile::OwnMount
    } else {
        MemoryFile::Mounted
    }
}

/// Ascending pages as ranges of the first and how many.
fn runs(pages: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = vec![];
    for &page in pages {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == page => *count += 1,
            _ => runs.push((page, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_by_its_first_word() {
        let names = ["", "8:1:7", "8:1:7 /usr/bin/cc", "0:1:9 /dev/zero (deleted)"].map(str::to_owned);
        let mut files = Files::new(names.to_vec());
        assert_eq!(files.number(NameId(0)), None);
        assert_eq!(files.number(NameId(9)), None);
        assert_eq!(files.number(NameId(1)), Some(0));
        assert_eq!(files.number(NameId(2)), Some(0));
        assert_eq!(files.number(NameId(3)), Some(1));
        files.come(0, 2, 2);
        files.used(0, 0, 5);
        files.used(1, 0, 5);
        files.written(0, 7, 4);
        files.come(0, 8, 2);
        let all = files.finish();
        assert_eq!(
            (all[0].name.as_str(), &all[0].before),
            ("8:1:7 /usr/bin/cc", &vec![(0, 2), (4, 1), (7, 1), (10, 1)])
        );
        assert_eq!((all[1].kind, all[1].before.len()), (FileKind::Memory, 0));
        assert_eq!((all[0].pages, all[1].pages), (11, 5));
    }

    #[test]
    fn what_lies_on_a_device_in_memory_comes_into_being_as_it_is_written() {
        let mut files = Files::new(vec!["0:31:5".to_owned(), "0:3:5".to_owned()]);
        files.lie_in_memory(&["0:31".to_owned()]);
        assert_eq!([files.number(NameId(0)), files.number(NameId(1))], [Some(0), Some(1)]);
        assert_eq!(files.written(0, 4, 3), 3);
        assert_eq!(files.written(0, 5, 3), 1, "one more than before");
        files.cut(0, 0, 6);
        assert_eq!(files.written(0, 4, 3), 2, "those that were cut off come anew");
        assert_eq!(files.written(1, 4, 3), 0, "a disk's pages have events of their own");
        let all = files.finish();
        assert_eq!((all[0].kind, all[0].before.len()), (FileKind::Memory, 0));
        assert_eq!(all[1].kind, FileKind::Disk);
    }

    #[test]
    fn files_of_an_initramfs_are_memory_that_was_there_before() {
        let mut files = Files::new(vec!["0:2:5 /bin/sh".to_owned()]);
        assert_eq!(files.number(NameId(0)), Some(0));
        files.used(0, 3, 2);
        let all = files.finish();
        assert_eq!((all[0].kind, &all[0].before), (FileKind::Memory, &vec![(3, 2)]));
    }
}
