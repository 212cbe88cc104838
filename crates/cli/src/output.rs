//! Output: stdout, stderr, files. A file is written under another name beside its place, and takes that place when it is
//! complete. If it cannot be written, the command fails and leaves no part of it.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// What a page that we wrote begins with, and any other.
const PAGE_BEGINS: &[u8] = b"<!doctype html";

/// Where an answer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    /// Almost always.
    Stdout,
    /// Where stdout is that of a command which we run.
    Stderr,
}

impl Channel {
    /// Writes `text`.
    ///
    /// Where it does not arrive, be it for a full disk or because nobody reads on, the caller is to stop: what was
    /// printed is not all that there was to say.
    pub(crate) fn print(self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Stdout => write_all(io::stdout().lock(), text),
            Self::Stderr => write_all(io::stderr().lock(), text),
        }
        .map_err(|error| self.unprinted(&error))
    }

    /// Why what was written is not whole.
    pub(crate) fn unprinted(self, error: &io::Error) -> Failure {
        let name = match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        };
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure(format!("{name}: its reader was gone before everything was written"));
        }
        Failure(format!("{name}: {error}; what was written to it is not whole"))
    }

    /// Whether somebody looks at it.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }
}

fn write_all(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
}

/// Writes `text` to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    Channel::Stdout.print(text)
}

/// A line on stderr. If stderr cannot be written to, there is nobody left to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A place for a file, which can be written to.
#[derive(Debug)]
pub(crate) struct Destination {
    /// As the user calls it.
    asked: PathBuf,
    /// Without links: what is replaced is the file, not a link to it.
    real: PathBuf,
    /// A device or a pipe, which is written to as it is.
    is_special: bool,
}

impl Destination {
    /// The place `path`. That it cannot be written to is said before anything is measured.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let destination = Self::unchecked(path)?;
        // Made and taken away again: only this tells whether it can be done.
        drop(destination.draft()?);
        Ok(destination)
    }

    /// The place of a page. Another kind of file is not replaced: it was probably named by mistake, and may be a recording.
    pub(crate) fn of_page(path: &Path) -> Result<Self, Failure> {
        let destination = Self::of(path)?;
        if !destination.is_special && !is_page(&destination.real).map_err(|error| Failure::at(path, error))? {
            return Err(Failure::at(path, "exists and is no page, so --report does not replace it"));
        }
        Ok(destination)
    }

    fn unchecked(path: &Path) -> Result<Self, Failure> {
        let at = |error: io::Error| Failure::at(path, error);
        let (real, is_special) = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(Failure::at(path, "is a directory, not a file")),
            Ok(there) => (fs::canonicalize(path).map_err(at)?, !there.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), false),
            Err(error) => return Err(at(error)),
        };
        Ok(Self { asked: path.to_owned(), real, is_special })
    }

    /// Fails if `input` is this file: a copy does not replace its original.
    pub(crate) fn is_not(&self, input: &Path) -> Result<(), Failure> {
        match fs::canonicalize(input) {
            Ok(input) if input == self.real => {
                Err(Failure::at(&self.asked, "is the input, too; name another file for the output"))
            }
            _ => Ok(()),
        }
    }

    /// A file in the making.
    pub(crate) fn draft(&self) -> Result<Draft<'_>, Failure> {
        let at = |error: io::Error| Failure::at(&self.asked, error);
        if self.is_special {
            let file = OpenOptions::new().write(true).open(&self.asked).map_err(at)?;
            return Ok(Draft { to: self, content: Content::Special(file) });
        }
        let folder = match self.real.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // A fresh file is as open as the umask lets it be, another stays as open as it was.
        let mode = fs::metadata(&self.real).map_or(0o666, |there| there.permissions().mode());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".freehold-").permissions(Permissions::from_mode(mode));
        let file = builder.tempfile_in(folder);
        let file = file.map_err(|error| Failure::at(&self.asked, without_path(&error)))?;
        Ok(Draft { to: self, content: Content::Beside(file) })
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let draft = self.draft()?;
        let mut file = draft.file();
        file.write_all(bytes).map_err(|error| Failure::at(&self.asked, error))?;
        draft.keep()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asked.display().fmt(f)
    }
}

/// Without the temporary file's name, which is nothing that the user asked for.
fn without_path(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or_default().to_owned()
}

/// Whether there is no file, an empty one, or a page.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut first = vec![];
    match File::open(path) {
        Ok(file) => io::Read::read_to_end(&mut io::Read::take(file, PAGE_BEGINS.len() as u64), &mut first)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(first.is_empty() || first.eq_ignore_ascii_case(PAGE_BEGINS))
}

/// A file in the making; it goes away again unless it is kept.
pub(crate) struct Draft<'a> {
    to: &'a Destination,
    content: Content,
}

enum Content {
    /// Under another name, in the same folder.
    Beside(NamedTempFile),
    /// What has no content of its own.
    Special(File),
}

impl Draft<'_> {
    /// What to write to.
    pub(crate) fn file(&self) -> &File {
        match &self.content {
            Content::Beside(file) => file.as_file(),
            Content::Special(file) => file,
        }
    }

    /// The file's name for now.
    pub(crate) fn path(&self) -> &Path {
        match &self.content {
            Content::Beside(file) => file.path(),
            Content::Special(_) => &self.to.asked,
        }
    }

    /// Gives the file its name: all of it was written.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        let Self { to, content } = self;
        let at = |error: io::Error| Failure::at(&to.asked, error);
        match content {
            Content::Beside(file) => {
                // Some disks say only now that they are full.
                file.as_file().sync_all().map_err(at)?;
                file.persist(&to.real).map(drop).map_err(|error| at(error.error))
            }
            Content::Special(_) => Ok(()),
        }
    }

    /// As [`Draft::keep`]; a file that has the name becomes `NAME.old`.
    pub(crate) fn keep_beside_older(self) -> Result<(), Failure> {
        let real = &self.to.real;
        if !self.to.is_special && real.exists() {
            let older = older(real);
            fs::rename(real, &older).map_err(|error| Failure::at(&older, error))?;
        }
        self.keep()
    }
}

/// What an older file is called: `NAME.old`.
pub(crate) fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_left_of_what_was_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let destination = Destination::of(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        destination.draft().unwrap().file().write_all(b"half").unwrap();
        assert!(names(folder.path()).is_empty());
        destination.write(b"whole").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"whole".to_vec(), vec!["a.txt".into()])
        );
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.txt"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Destination::of(&link).unwrap().write(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn an_older_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        for text in ["one", "two", "three"] {
            let destination = Destination::of(&path).unwrap();
            let draft = destination.draft().unwrap();
            draft.file().write_all(text.as_bytes()).unwrap();
            draft.keep_beside_older().unwrap();
        }
        assert_eq!(names(folder.path()), ["a.rec", "a.rec.old"]);
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::read(older(&path)).unwrap(), b"two");
    }

    #[test]
    fn a_page_does_not_replace_what_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (content, fits) in [("", true), ("<!DOCTYPE html>\n", true), ("\u{89}FHR", false)] {
            fs::write(&path, content).unwrap();
            assert_eq!(Destination::of_page(&path).is_ok(), fits, "{content:?}");
        }
    }

    #[test]
    fn a_full_device_and_a_directory_are_said() {
        let full = Destination::of(Path::new("/dev/full")).unwrap();
        let Failure(line) = full.write(b"something").unwrap_err();
        assert!(line.starts_with("/dev/full: No space left"), "{line}");
        let Failure(line) = Destination::of(Path::new("/")).unwrap_err();
        assert_eq!(line, "/: is a directory, not a file");
        let Failure(line) = Destination::of(Path::new("/no/such/folder/a")).unwrap_err();
        assert!(line.starts_with("/no/such/folder/a: No such file"), "{line}");
    }
}
