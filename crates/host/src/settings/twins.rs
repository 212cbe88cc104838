//! Files of one setting in two units: writing one makes the other read 0. The one in bytes does not take its own 0, so what was there
//! comes back by the other, and what is kept of one is kept of both.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Held, SettingsError, current};

/// In parts of memory, and in bytes or KiB.
const TWINS: [(&str, &str); 3] = [
    ("dirty_ratio", "dirty_bytes"),
    ("dirty_background_ratio", "dirty_background_bytes"),
    ("overcommit_ratio", "overcommit_kbytes"),
];

/// The file beside `path` that is written with it; `None` of most.
pub(super) fn twin_of(path: &Path) -> Option<PathBuf> {
    let is = |name: &str| path.file_name().is_some_and(|file| file == name);
    let other = |(part, size): &(&'static str, &'static str)| match (is(part), is(size)) {
        (true, _) => Some(*size),
        (_, true) => Some(*part),
        _ => None,
    };
    let twin = TWINS.iter().find_map(other);
    twin.map(|twin| path.with_file_name(twin))
}

fn is_in_bytes(path: &Path) -> bool {
    TWINS.iter().any(|(_, size)| path.file_name().is_some_and(|file| file == *size))
}

/// Whether it says that its twin is in force: the file in bytes at 0.
pub(super) fn is_others(held: &Held) -> bool {
    held.text.trim() == "0" && is_in_bytes(&held.path)
}

/// What each of `written` has both files hold, one after the other.
pub(super) fn with_displaced(written: &[Held]) -> impl Iterator<Item = Held> {
    let displaced = |held: &Held| twin_of(&held.path).map(|path| Held { path, text: "0".into() });
    written
        .iter()
        .flat_map(move |held| [Some(held.clone()), displaced(held).filter(|_| !is_others(held))])
        .flatten()
}

/// What `paths` hold, and their twins where there are any: of two the one in bytes comes last, and so wins where all are written.
pub(super) fn held_with_twins(paths: &[PathBuf]) -> Result<Vec<Held>, SettingsError> {
    let twins = paths.iter().filter_map(|path| twin_of(path)).filter(|twin| twin.exists());
    let mut all: Vec<PathBuf> = paths.iter().cloned().chain(twins).collect();
    all.sort_by_key(|path| is_in_bytes(path));
    let mut seen = BTreeSet::new();
    all.retain(|path| seen.insert(path.clone()));
    all.into_iter().map(|path| Ok(Held { text: current(&path)?, path })).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn held(path: &Path, text: &str) -> Held {
        Held { path: path.into(), text: text.into() }
    }

    #[test]
    fn both_are_kept_and_the_one_in_bytes_is_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let (ratio, bytes, other) =
            (file("dirty_ratio", "20\n"), file("dirty_bytes", "0\n"), file("other", "7\n"));
        let kept = [held(&ratio, "20"), held(&bytes, "0")];
        assert_eq!(held_with_twins(std::slice::from_ref(&bytes)).unwrap(), kept);
        assert_eq!(held_with_twins(&[bytes, ratio]).unwrap(), kept);
        assert_eq!(held_with_twins(std::slice::from_ref(&other)).unwrap(), [held(&other, "7")]);
        // A kernel that has one of them alone.
        let alone = file("overcommit_ratio", "50\n");
        assert_eq!(held_with_twins(std::slice::from_ref(&alone)).unwrap(), [held(&alone, "50")]);
    }

    #[test]
    fn zero_bytes_say_that_the_other_is_in_force() {
        let says = |name: &str, text: &str| is_others(&held(&Path::new("/proc/sys/vm").join(name), text));
        assert!(says("dirty_bytes", "0") && says("overcommit_kbytes", "0"));
        assert!(!says("dirty_bytes", "4096") && !says("dirty_ratio", "0") && !says("swappiness", "0"));
    }
}
