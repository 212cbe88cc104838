//! Which part of a recording's file is not as it was written, and from where on.

use std::fmt;

use serde::Serialize;

/// The damage of a file. What a reader hands out in spite of it was recorded so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Damage {
    /// How the file was damaged.
    pub how: How,
    /// Bytes from the file's start up to which everything is as it was written.
    pub offset: u64,
    /// Chunks of events before that place.
    pub chunks_before: u64,
    /// ns from the recording's start to the last event before that place; `None` if there is none.
    pub after_ns: Option<u64>,
    /// Chunks of events that are known to be there and cannot be read, or not be understood without a table that cannot be
    /// read.
    pub chunks: u64,
    /// Events in these, where that is known.
    pub events: Option<u64>,
    /// Whether the recording's end is missing, so that nobody knows what else there was.
    pub end_is_missing: bool,
}

/// How a file was damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// It ends too early.
    Cut,
    /// It holds other bytes than were written.
    Changed,
}

impl Damage {
    /// Whether events are missing.
    pub const fn loses_events(&self) -> bool {
        self.end_is_missing || self.chunks > 0
    }

    /// Chunks that are missing, at least.
    pub fn chunks_at_least(&self) -> u64 {
        self.chunks + u64::from(self.end_is_missing)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Cut => "is cut off",
            How::Changed => "is damaged",
        };
        write!(f, "{how} at byte {}", self.offset)?;
        if !self.loses_events() {
            return f.write_str(", which costs none of its events");
        }
        match self.after_ns {
            Some(ns) => write!(
                f,
                ", after {} of events and {:.6} s",
                counted(self.chunks_before, "chunk"),
                ns as f64 / 1e9
            )?,
            None => f.write_str(", before its first event")?,
        }
        if self.chunks > 0 {
            write!(f, ": {}", counted(self.chunks, "chunk"))?;
            if let Some(events) = self.events {
                write!(f, " with {}", counted(events, "event"))?;
            }
            f.write_str(" cannot be read")?;
        }
        match (self.end_is_missing, self.chunks > 0) {
            (true, true) => f.write_str(", nor what was recorded later"),
            (true, false) => f.write_str(": what was recorded later is missing"),
            (false, _) => Ok(()),
        }
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
