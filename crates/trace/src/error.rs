//! What can go wrong with a recording. Each message is one line and leaves the file's name to the caller.

use std::{fmt, io};

use crate::format::VERSION_MAJOR;

/// Why a recording, or a `perf.data`, cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system would not let us.
    Io(io::Error),
    /// The file is something else.
    NotARecording,
    /// A newer Freehold wrote it.
    NewerVersion {
        /// Its major version.
        found: u16,
    },
    /// It was cut short before anything could be recorded.
    Empty,
    /// It was damaged or written wrongly.
    Corrupt {
        /// Bytes from the file's start to the chunk or record in question.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It is sound, but of a kind that cannot be imported.
    Unsupported(&'static str),
}

impl ReadError {
    pub(crate) const fn corrupt(offset: u64, what: &'static str) -> Self {
        Self::Corrupt { offset, what }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::NotARecording => f.write_str("is not a Freehold recording (nor a perf.data file)"),
            Self::NewerVersion { found } => write!(
                f,
                "is a recording of format version {found}; this Freehold reads up to {VERSION_MAJOR}: use a newer one"
            ),
            Self::Empty => f.write_str("was cut short before the first event: there is nothing to read"),
            Self::Corrupt { offset, what } => write!(f, "is damaged at byte {offset}: {what}"),
            Self::Unsupported(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a recording could not be made or written.
#[derive(Debug)]
pub enum RecordError {
    /// The options contradict each other or name what does not exist.
    Options(String),
    /// The kernel would not let us; says what to do.
    Permission(String),
    /// The kernel does not have something that is needed.
    Missing(String),
    /// The command could not be started.
    Command {
        /// Its name.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The output could not be written. What was recorded until then can be read.
    Output {
        /// Why.
        error: io::Error,
        /// Bytes that were written whole.
        kept_bytes: u64,
        /// Events in them.
        kept_events: u64,
    },
    /// A file that is read while writing, as by import and mask.
    Input(ReadError),
    /// A system call failed.
    System {
        /// Which, and what for.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl RecordError {
    pub(crate) fn system(what: &'static str) -> Self {
        Self::System { what, error: io::Error::last_os_error() }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) | Self::Permission(what) | Self::Missing(what) => f.write_str(what),
            Self::Command { program, error } => write!(f, "{program} cannot be started: {error}"),
            Self::Output { error, kept_events: 0, .. } => {
                write!(f, "the recording could not be written: {error}; nothing of it is kept")
            }
            Self::Output { error, kept_bytes, kept_events } => write!(
                f,
                "the recording could not be written further: {error}; its first {kept_events} events \
                 ({kept_bytes} bytes) are kept and can be read"
            ),
            Self::Input(error) => error.fmt(f),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<ReadError> for RecordError {
    fn from(error: ReadError) -> Self {
        Self::Input(error)
    }
}
