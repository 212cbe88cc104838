//! The file that a recording goes to. Until the command runs, an earlier file of the name is left alone; then it becomes
//! `NAME.old`. What is recorded goes straight to the new file, so that a crash leaves what was there by then.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::RecordError;
use crate::format::Written;

/// A file to write a recording to.
pub(super) struct Output {
    pub(super) file: File,
    /// Its name, without links; `None` for a device or a pipe, which is written to as it is.
    place: Option<WaitingFile>,
}

struct WaitingFile {
    path: PathBuf,
    /// What the file is called until the command runs.
    waiting: PathBuf,
    has_begun: AtomicBool,
}

impl Output {
    /// Makes the file, under a name of its own.
    pub(super) fn open(path: &Path) -> Result<Self, RecordError> {
        let failed = |error| RecordError::System { what: "creating the recording", error };
        let is_special = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(there) => !there.is_file(),
            Err(_) => false,
        };
        if is_special {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(Self { file, place: None });
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let waiting = with_ending(&path, &format!(".{}.new", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&waiting).map_err(failed)?;
        Ok(Self { file, place: Some(WaitingFile { path, waiting, has_begun: AtomicBool::new(false) }) })
    }

    /// Gives the file its name; one that has the name becomes `NAME.old`.
    pub(super) fn begin(&self) -> Result<(), RecordError> {
        let Some(WaitingFile { path, waiting, has_begun }) = &self.place else { return Ok(()) };
        if path.exists() {
            let kept = fs::rename(path, with_ending(path, ".old"));
            kept.map_err(|error| RecordError::System { what: "keeping the older recording", error })?;
        }
        let named = fs::rename(waiting, path);
        named.map_err(|error| RecordError::System { what: "naming the recording", error })?;
        // Relaxed: read by the same thread, or after it was joined.
        has_begun.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Cuts the file off after its last whole chunk and says what is left. A file without an event is taken away.
    pub(super) fn cut(&self, kept: Written, error: io::Error) -> RecordError {
        let _ = self.file.set_len(kept.bytes);
        if let Some(place) = self.place.as_ref().filter(|_| kept.events == 0) {
            let _ = fs::remove_file(&place.path);
        }
        RecordError::Output { error, kept_bytes: kept.bytes, kept_events: kept.events }
    }
}

/// A file that never got its name goes away again.
impl Drop for Output {
    fn drop(&mut self) {
        if let Some(place) = self.place.as_ref().filter(|place| !place.has_begun.load(Ordering::Relaxed)) {
            let _ = fs::remove_file(&place.waiting);
        }
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
