//! For build scripts: a folder of TOML files as a table in the program, so that a new file is all that a new entry takes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

struct Entry {
    place: u32,
    name: String,
    path: String,
}

/// Writes the TOML files of `folder`, a path from the crate's own, into `file` as an expression for `include!`: a slice of
/// names with texts. They stand in the order of what `place` makes of the text, then of the names. Cargo runs the script
/// again when a file comes, goes or changes.
///
/// # Errors
/// The folder or a file in it cannot be read, or `file` not be written.
pub(crate) fn bundle(folder: &str, file: &str, place: impl Fn(&str) -> u32) -> io::Result<()> {
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(folder);
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut entries = vec![];
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let place = place(&fs::read_to_string(&path)?);
            entries.push(Entry { place, name, path: path.display().to_string() });
        }
    }
    entries.sort_by(|one, other| (one.place, &one.name).cmp(&(other.place, &other.name)));
    let mut table = "&[\n".to_owned();
    for Entry { name, path, .. } in entries {
        writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("a string takes all");
    }
    table += "]\n";
    fs::write(Path::new(&variable("OUT_DIR")).join(file), table)
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
