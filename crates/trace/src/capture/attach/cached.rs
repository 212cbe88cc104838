//! What is in the page cache of the files that processes have mapped or open, by cachestat(2) (Linux 6.5).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::event::FileKey;
use crate::stream::attached::{AttachedSpace, CachedRange};

/// The call's number, the same on all machines that have it.
const CACHESTAT: libc::c_long = 451;
/// Pages of a range, unless the file has more than so many of them.
const RANGE_PAGES: u64 = 512;
const RANGES_MAX: u64 = 1024;

/// `struct cachestat_range`.
#[repr(C)]
struct ByteRange {
    offset: u64,
    len: u64,
}

/// `struct cachestat`.
#[repr(C)]
#[derive(Default)]
struct CacheState {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What is cached of the files of these processes, ranges with nothing left out. Empty on a kernel that does not say.
pub(super) fn of(spaces: &[AttachedSpace]) -> Vec<CachedRange> {
    let mut places: BTreeMap<FileKey, PathBuf> = BTreeMap::new();
    for space in spaces {
        for map in space.maps.iter().filter(|map| map.file != FileKey::NONE) {
            let end = map.address + (u64::from(map.pages) << mm::ids::PAGE_SHIFT);
            let place = format!("/proc/{}/map_files/{:x}-{end:x}", space.pid, map.address);
            places.entry(map.file).or_insert_with(|| place.into());
        }
        let open = fs::read_dir(format!("/proc/{}/fd", space.pid)).into_iter().flatten().flatten();
        for place in open.map(|entry| entry.path()) {
            // Looked at before it is opened: opening a pipe or a device may do something.
            let metadata = fs::metadata(&place).ok().filter(fs::Metadata::is_file);
            if let Some(key) = metadata.map(|metadata| key_of(&metadata)) {
                places.entry(key).or_insert(place);
            }
        }
    }
    places.iter().flat_map(|(key, place)| of_file(*key, place).unwrap_or_default()).collect()
}

fn key_of(metadata: &fs::Metadata) -> FileKey {
    let device = metadata.dev();
    FileKey { device: libc::major(device) << 20 | libc::minor(device), inode: metadata.ino() }
}

fn of_file(key: FileKey, place: &Path) -> Option<Vec<CachedRange>> {
    let metadata = fs::metadata(place).ok().filter(fs::Metadata::is_file)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOATIME).open(place);
    let file = file.or_else(|_| File::open(place)).ok()?;
    let path = fs::read_link(place).ok()?.as_os_str().as_bytes().to_vec();
    let pages = metadata.len().div_ceil(mm::ids::PAGE_SIZE);
    let step = RANGE_PAGES.max(pages.div_ceil(RANGES_MAX));
    let mut ranges = vec![];
    for first in (0..pages).step_by(step as usize) {
        let pages = step.min(pages - first);
        let cached = cached_pages(&file, first, pages)?;
        if cached > 0 {
            let (first, pages) = (u32::try_from(first).ok()?, u32::try_from(pages).ok()?);
            let cached = cached.min(u64::from(pages)) as u32;
            ranges.push(CachedRange { file: key, path: path.clone(), first, pages, cached });
        }
    }
    Some(ranges)
}

fn cached_pages(file: &File, first: u64, pages: u64) -> Option<u64> {
    let range = ByteRange { offset: first << mm::ids::PAGE_SHIFT, len: pages << mm::ids::PAGE_SHIFT };
    let mut state = CacheState::default();
    // SAFETY: the range is read and the state filled in; both live through the call.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut state, 0) };
    (result == 0).then_some(state.cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_was_just_written_is_cached() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; 600 * 4096]).unwrap();
        if cached_pages(file.as_file(), 0, 1).is_none() {
            eprintln!("skipped: no cachestat");
            return;
        }
        let me = AttachedSpace { pid: std::process::id(), ..AttachedSpace::default() };
        let key = key_of(&file.as_file().metadata().unwrap());
        let found: Vec<CachedRange> = of(&[me]).into_iter().filter(|range| range.file == key).collect();
        let ranges: Vec<(u32, u32, u32)> =
            found.iter().map(|range| (range.first, range.pages, range.cached)).collect();
        assert_eq!(ranges, [(0, 512, 512), (512, 88, 88)]);
        assert_eq!(found[0].path, file.path().as_os_str().as_bytes());
    }
}
