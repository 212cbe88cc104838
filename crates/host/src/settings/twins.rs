//! Files of one setting in two units: writing one makes the other read 0. The one in bytes does not take its own 0, so what was there
//! comes back by the other, and what is kept of one is kept of both.

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
    let name = path.file_name()?.to_str()?;
    let twin = TWINS.iter().find_map(|(part, size)| match name {
        _ if name == *part => Some(size),
        _ if name == *size => Some(part),
        _ => None,
    });
    twin.map(|twin| path.with_file_name(twin))
}

/// Whether it says that its twin is in force: the file in bytes at 0.
pub(super) fn is_others(held: &Held) -> bool {
    let name = held.path.file_name().and_then(|name| name.to_str());
    held.text.trim() == "0" && TWINS.iter().any(|(_, size)| name == Some(size))
}

/// What the twin of `written` holds from then on, where `before` has it.
pub(super) fn displaced(written: &Held, before: &[Held]) -> Option<Held> {
    let twin = twin_of(&written.path).filter(|_| !is_others(written))?;
    before.iter().find(|held| held.path == twin).map(|_| Held { path: twin, text: "0".into() })
}

/// What `paths` hold, and their twins where there are any: of two the one in bytes comes last, and so wins where all are written.
pub(super) fn held_with_twins(paths: &[PathBuf]) -> Result<Vec<Held>, SettingsError> {
    let mut all: Vec<PathBuf> = vec![];
    let twins = paths.iter().filter_map(|path| twin_of(path)).filter(|twin| twin.exists());
    let both = paths.iter().cloned().chain(twins);
    let (sizes, parts): (Vec<PathBuf>, Vec<PathBuf>) = both
        .partition(|path| TWINS.iter().any(|(_, size)| path.file_name().is_some_and(|name| name == *size)));
    for path in parts.into_iter().chain(sizes) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
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
