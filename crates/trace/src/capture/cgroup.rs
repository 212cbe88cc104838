//! The processes of a cgroup, of version 1 or 2.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::RecordError;

/// Where hierarchies are mounted; of version 1 the one that bounds memory.
const ROOTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"];
const MEMBERS: &str = "cgroup.procs";

/// The folder of the cgroup that is named so: a folder, or a path in a hierarchy, as /proc/PID/cgroup has it.
pub(super) fn find(name: &Path) -> Result<PathBuf, RecordError> {
    let relative = name.strip_prefix("/").unwrap_or(name);
    let mut places =
        std::iter::once(name.to_owned()).chain(ROOTS.iter().map(|root| Path::new(root).join(relative)));
    let found = places.find(|place| place.join(MEMBERS).is_file());
    found.ok_or_else(|| {
        let looked = ROOTS.join(", ");
        RecordError::Options(format!("there is no cgroup {} (looked there and in {looked})", name.display()))
    })
}

/// The processes that are in it, or in one below.
pub(super) fn members(folder: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(folder.join(MEMBERS)).unwrap_or_default();
    let mut found: BTreeSet<u32> = text.lines().filter_map(|pid| pid.parse().ok()).collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(members(&entry.path()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_those_below_belong_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        for (place, text) in [(folder.path(), "7\n9\n"), (below.as_path(), "12\n")] {
            fs::write(place.join(MEMBERS), text).unwrap();
        }
        assert_eq!(find(folder.path()).unwrap(), folder.path());
        assert_eq!(members(folder.path()), [7, 9, 12].into());
        let error = find(Path::new("/nowhere/at all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at all") && !error.contains('\n'), "{error}");
    }
}
