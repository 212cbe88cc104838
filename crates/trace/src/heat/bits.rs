//! The accessed bits of a process: the two files of /proc by which they are cleared and seen.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::time::{Duration, Instant};

/// Whether the CPUs are to forget the process's translations, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Translations {
    /// They do: a page that is used all the time gets its bit back at once. Where the kernel has soft-dirty bits these are
    /// cleared, and each page's next write is a fault.
    Flushed,
    /// They keep them: a page gets its bit back when its translation is looked up in the page tables again.
    Kept,
}

/// The files, open. Who has them open goes on seeing the process, not another that gets its number.
#[derive(Debug)]
pub(crate) struct AccessedBits {
    refs: File,
    smaps: File,
}

/// What clearing came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clearing {
    /// When it began.
    pub(crate) began: Instant,
    /// How long it took; so long the lock of the address space was held.
    pub(crate) took: Duration,
    /// Whether all was done that was asked for.
    pub(crate) is_whole: bool,
}

/// The text of `smaps`.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    /// When looking began.
    pub(crate) began: Instant,
    /// How long it took.
    pub(crate) took: Duration,
    /// Empty if the process has ended.
    pub(crate) text: String,
}

impl AccessedBits {
    /// Those of `pid`; the error has the file's path.
    pub(crate) fn open(pid: u32) -> Result<Self, (String, io::Error)> {
        let opened = |name: &str, options: &mut OpenOptions| {
            let path = format!("/proc/{pid}/{name}");
            options.open(&path).map_err(|error| (path, error))
        };
        let refs = opened("clear_refs", OpenOptions::new().write(true))?;
        let smaps = opened("smaps", OpenOptions::new().read(true))?;
        Ok(Self { refs, smaps })
    }

    /// Clears all of them.
    ///
    /// # Errors
    /// The process has ended, or the system would not let us.
    pub(crate) fn clear(&mut self, translations: Translations) -> io::Result<Clearing> {
        let began = Instant::now();
        self.refs.write_all(b"1")?;
        // Clearing leaves the TLBs alone, and a CPU sets no bit of a page that it still has there: a page used all the
        // time would seem unused until it happens to be thrown out. Clearing the soft-dirty bits flushes them, also
        // where the kernel has no such bits.
        let is_whole = translations == Translations::Kept || self.refs.write_all(b"4").is_ok();
        Ok(Clearing { began, took: began.elapsed(), is_whole })
    }

    /// Which are set again, by mapping.
    ///
    /// # Errors
    /// The process has ended, or the system would not let us.
    pub(crate) fn look(&mut self) -> io::Result<Looked> {
        let began = Instant::now();
        let mut bytes = vec![];
        self.smaps.rewind()?;
        self.smaps.read_to_end(&mut bytes)?;
        Ok(Looked { began, took: began.elapsed(), text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}
