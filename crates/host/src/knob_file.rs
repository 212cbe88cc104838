//! What the running kernel's own file of a knob holds.

use std::fs;
use std::io::ErrorKind;

/// A file under /proc/sys or /sys, as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnobFile {
    /// The running kernel has no such file.
    Missing,
    /// It has it, and does not let us read it: why.
    Unreadable(String),
    /// Its text, without space around it.
    Holds(String),
}

impl KnobFile {
    /// Reads the file at `path`.
    pub fn read(path: &str) -> Self {
        match fs::read_to_string(path) {
            Ok(text) => Self::Holds(text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Missing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_or_not() {
        assert_eq!(KnobFile::read("/proc/sys/vm/no_such_knob"), KnobFile::Missing);
        let KnobFile::Holds(text) = KnobFile::read("/proc/sys/vm/swappiness") else {
            panic!("every kernel has it")
        };
        assert!(text.parse::<u32>().is_ok(), "{text}");
        // A directory is there, and cannot be read as a file.
        assert!(matches!(KnobFile::read("/proc/sys/vm"), KnobFile::Unreadable(_)));
    }
}
