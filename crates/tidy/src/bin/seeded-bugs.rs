//! Puts bugs into a copy of the sources and asks whether the tests find them: `make seeded-bugs`.
//!
//! A concurrency test that never caught a bug proves little. crates/mm/tests/seeded/bugs.toml lists bugs of the kinds
//! that compaction and khugepaged could have; for each one a copy of the workspace gets that bug, and the test it names must fail
//! (a copy that does not build is no answer). The sources here are never touched.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

type Outcome<T> = Result<T, String>;

struct Bug {
    name: String,
    from: String,
    to: String,
    /// The file of tests, and the test in it.
    binary: String,
    test: String,
}

/// What the test said of it.
#[derive(PartialEq)]
enum Verdict {
    Found,
    Missed,
    /// It was not run: what cargo said last.
    NotRun(String),
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("seeded-bugs: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether all bugs were found.
fn run() -> Outcome<bool> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = root.join("crates/mm/tests/seeded/bugs.toml");
    let bugs = bugs(&fs::read_to_string(&list).map_err(|error| at(&list, &error))?)?;
    let copy = root.join("target/seeded/tree");
    let mut missed = 0;
    for bug in &bugs {
        lay(&root, &copy)?;
        seed(&copy, bug)?;
        let verdict = test(&root, &copy, bug)?;
        missed += u32::from(verdict != Verdict::Found);
        match verdict {
            Verdict::Found => println!("found    {} ({})", bug.name, bug.test),
            Verdict::Missed => println!("MISSED   {} ({} passes)", bug.name, bug.test),
            Verdict::NotRun(said) => println!("NOT RUN  {}: {said}", bug.name),
        }
    }
    println!("{} of {} seeded bugs were found", bugs.len() - missed as usize, bugs.len());
    Ok(missed == 0)
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn bugs(text: &str) -> Outcome<Vec<Bug>> {
    let table: toml::Table = text.parse().map_err(|error| format!("bugs.toml: {error}"))?;
    let entries = table.get("bug").and_then(toml::Value::as_array).ok_or("bugs.toml: it has no [[bug]]")?;
    let read = |entry: &toml::Value| {
        let text = |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(str::to_owned);
        let test = |place: usize| text(entry.get("test").and_then(|pair| pair.get(place)));
        Some(Bug {
            name: text(entry.get("name"))?,
            from: text(entry.get("from"))?,
            to: text(entry.get("to"))?,
            binary: test(0)?,
            test: test(1)?,
        })
    };
    let all: Option<Vec<Bug>> = entries.iter().map(read).collect();
    all.ok_or_else(|| "bugs.toml: each bug has name, from, to and test = [file, test]".into())
}

/// Makes `copy` what is in `root`: the files that git knows, and nothing of an earlier bug. Files keep their times, so that
/// only what has the bug is built again.
fn lay(root: &Path, copy: &Path) -> Outcome<()> {
    let script = "rm -rf \"$1\" && mkdir -p \"$1\" && cd \"$0\" && git ls-files -z -co --exclude-standard | \
                  xargs -0 cp --parents --preserve=timestamps -t \"$1\"";
    let status = Command::new("sh").args(["-c", script]).args([root, copy]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the sources could not be copied to {}: {status}", copy.display())),
        Err(error) => Err(format!("sh: {error}")),
    }
}

/// The one file under `root` that has the bug's place.
fn place(root: &Path, bug: &Bug) -> Outcome<PathBuf> {
    let mut places = vec![];
    walk(&root.join("crates/mm/src"), &mut |path| {
        let text = fs::read_to_string(path).map_err(|error| at(path, &error))?;
        places.extend((0..text.matches(&bug.from).count()).map(|_| path.to_owned()));
        Ok(())
    })?;
    let count = places.len();
    let wrong = || format!("{}: its `from` stands {count} times in crates/mm/src, not once", bug.name);
    places.pop().filter(|_| count == 1).ok_or_else(wrong)
}

/// Puts the bug into its place.
fn seed(copy: &Path, bug: &Bug) -> Outcome<()> {
    let place = place(copy, bug)?;
    let text = fs::read_to_string(&place).map_err(|error| at(&place, &error))?;
    fs::write(&place, text.replace(&bug.from, &bug.to)).map_err(|error| at(&place, &error))
}

fn walk(folder: &Path, see: &mut impl FnMut(&Path) -> Outcome<()>) -> Outcome<()> {
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let path = entry.map_err(|error| at(folder, &error))?.path();
        if path.is_dir() {
            walk(&path, see)?;
        } else {
            see(&path)?;
        }
    }
    Ok(())
}

fn test(root: &Path, copy: &Path, bug: &Bug) -> Outcome<Verdict> {
    let target = root.join("target/seeded/target");
    let output = Command::new(copy.join("scripts/cargo"))
        .args(["test", "--locked", "-p", "freehold-mm", "--test", &bug.binary, "--target-dir"])
        .arg(target)
        .args(["--", "--exact", &bug.test])
        .env("RUSTFLAGS", "--cfg shuttle")
        .current_dir(copy)
        .output()
        .map_err(|error| format!("scripts/cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(if said.contains("test result: FAILED. 0 passed; 1 failed") {
        Verdict::Found
    } else if said.contains("test result: ok. 1 passed") {
        Verdict::Missed
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let error = stderr.lines().find(|line| line.starts_with("error")).unwrap_or("no test of that name");
        Verdict::NotRun(error.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_its_place() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let bugs = bugs(&fs::read_to_string(root.join("crates/mm/tests/seeded/bugs.toml")).unwrap()).unwrap();
        assert!(!bugs.is_empty());
        let wrong: Vec<String> = bugs.iter().filter_map(|bug| place(&root, bug).err()).collect();
        assert_eq!(wrong, Vec::<String>::new());
    }
}
