//! The journal of settings that were changed on this machine: who changed them, and what each file held before. It is there from
//! before the first write until all is put back, so that a program that was killed leaves behind what the next one undoes.
//!
//! Text, a line each: a heading, the owner (process number, its start by the kernel's clock, the boot), then a path and the old text
//! of each file with a tab between.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The first line.
const HEADING: &str = "freehold settings 1";

/// A file under /proc/sys or /sys, and the text that was written in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The file.
    pub path: PathBuf,
    /// What is to be written to have it as it was: one line, without a newline.
    pub text: String,
}

/// A process of one boot. A number alone is given out again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pid: u32,
    start: u64,
    boot: String,
}

/// A journal's whole content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    pub(super) owner: Owner,
    pub(super) held: Vec<Held>,
}

/// What is to be done about a journal that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// Its owner runs.
    Alive,
    /// Its owner is gone and left settings as they were not.
    Left,
    /// The machine was booted since: its settings are gone too.
    Rebooted,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or(0), boot: boot() }
    }

    /// Its process number.
    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// What has become of it.
    pub(super) fn standing(&self) -> Standing {
        if self.boot != boot() {
            Standing::Rebooted
        } else if start_of(self.pid) == Some(self.start) {
            Standing::Alive
        } else {
            Standing::Left
        }
    }
}

impl Journal {
    /// Reads the journal at `path`; `None` where there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => {
                parse(&text).map(Some).ok_or_else(|| io::Error::other("it is not a journal of freehold's"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it to `path`, whole, and only where nobody else's is: two programs that start at once cannot both have it.
    pub(super) fn create(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let draft = path.with_extension(format!("draft-{}", self.owner.pid));
        let written = self.write(&draft).and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        written?;
        // The name, too, is to be there after a crash.
        File::open(folder)?.sync_all()
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(self.text()?.as_bytes())?;
        file.sync_all()
    }

    fn text(&self) -> io::Result<String> {
        let Owner { pid, start, boot } = &self.owner;
        let mut text = format!("{HEADING}\n{pid} {start} {boot}\n");
        for Held { path, text: held } in &self.held {
            let path = path.to_str().filter(|path| !path.contains(['\t', '\n']));
            let path = path.ok_or_else(|| io::Error::other("a path that no line can hold"))?;
            text.extend([path, "\t", held, "\n"]);
        }
        Ok(text)
    }
}

/// Reads a journal's text; `None` if it is not one, or not whole.
fn parse(text: &str) -> Option<Journal> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEADING {
        return None;
    }
    let mut owner = lines.next()?.split(' ');
    let (pid, start, boot) =
        (owner.next()?.parse().ok()?, owner.next()?.parse().ok()?, owner.next()?.to_owned());
    let held = lines.map(|line| {
        let (path, text) = line.split_once('\t')?;
        Some(Held { path: PathBuf::from(path), text: text.to_owned() })
    });
    Some(Journal { owner: Owner { pid, start, boot }, held: held.collect::<Option<_>>()? })
}

/// What is read can be written, and is read back.
#[cfg(fuzzing)]
pub(super) fn fuzz(text: &str) {
    if let Some(journal) = parse(text) {
        let again = journal.text().expect("it was a line each");
        assert_eq!(parse(&again), Some(journal));
    }
}

/// When a process began, in the kernel's ticks since boot; `None` if there is none, or it has ended and nobody asked for its status.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    // The state is field 3, the start field 22.
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

/// The name of this boot.
pub(super) fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id = id.trim();
    if id.is_empty() { "unknown".into() } else { id.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let held = |path: &str, text: &str| Held { path: path.into(), text: text.into() };
        let held = vec![held("/sys/kernel/mm/a", "madvise"), held("/proc/sys/vm/b", "256\t256\t32")];
        Journal { owner: Owner::this(), held }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let journal = journal();
        assert_eq!(parse(&journal.text().unwrap()), Some(journal));
    }

    #[test]
    fn what_is_not_whole_is_none() {
        let text = journal().text().unwrap();
        assert_eq!(parse(&text[..text.len() - 1]), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("{}\n"), None);
        assert_eq!(parse(&text.replacen("settings 1", "settings 2", 1)), None);
        assert_eq!(parse(&text.replacen("a\tmadvise", "a", 1)), None);
    }

    #[test]
    fn owners_are_told_apart() {
        let this = Owner::this();
        assert_eq!(this.standing(), Standing::Alive);
        assert_eq!(Owner { start: this.start + 1, ..this.clone() }.standing(), Standing::Left);
        assert_eq!(Owner { boot: "another".into(), ..this }.standing(), Standing::Rebooted);
    }
}
