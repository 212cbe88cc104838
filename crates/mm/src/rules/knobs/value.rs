//! Values as a person writes them: the words of the kernel's own files, sizes, ranges with a step, plain numbers; and the
//! line that writes a value to a running kernel.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{KNOBS, Knob, KnobError, StandsFor, Word};

/// A range may stand for this many values: each of them is a simulation.
const LARGEST_RANGE: u64 = 1000;

/// A value with its knob, printed as it is written: the word where there is one, else the number. [`Knob::parse_one`]
/// reads it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The knob.
    pub knob: Knob,
    /// The value.
    pub value: u64,
}

/// What is to be written to a file of the running kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileText {
    /// The file.
    pub path: &'static str,
    /// The text, without a newline.
    pub text: String,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.knob.words().iter().find(|word| word.value == self.value) {
            Some(word) => f.pad(word.word),
            None => self.value.fmt(f),
        }
    }
}

impl Knob {
    /// The values that have words; empty where all are numbers. Others are numbers where [`Knob::has_words_only`] does not say so.
    pub fn words(self) -> &'static [Word] {
        self.spec().words
    }

    /// Whether every value has a word. A limit takes bytes, and one word for that there is none.
    pub fn has_words_only(self) -> bool {
        !self.words().is_empty() && self.spec().unit.is_empty()
    }

    /// `value` as it is written.
    pub const fn written(self, value: u64) -> Written {
        Written { knob: self, value }
    }

    /// Reads one value: a word, a number, or a size in the knob's unit (`64M`).
    ///
    /// # Errors
    /// Something else, a size that is no whole number of units, a value out of range.
    pub fn parse_one(self, text: &str) -> Result<u64, KnobError> {
        let value = self.words().iter().find(|word| word.word == text).map(|word| word.value);
        let value = match value {
            Some(value) => value,
            None => {
                self.number(text).ok_or_else(|| KnobError::Unreadable { knob: self, text: text.into() })?
            }
        };
        self.check(value)?;
        Ok(value)
    }

    /// Reads what one part of a list says: a value, or a range with or without a step (`0-100:20`, `64M-1G:64M`).
    ///
    /// # Errors
    /// Neither; a range that is empty, has no step, or stands for more than a thousand values; a value out of range.
    pub fn parse(self, text: &str) -> Result<Vec<u64>, KnobError> {
        // A word may have a hyphen in it.
        let is_word = self.words().iter().any(|word| word.word == text);
        let Some((first, rest)) = text.split_once('-').filter(|_| !is_word) else {
            return Ok([self.parse_one(text)?].into());
        };
        let (last, step) = rest.split_once(':').unwrap_or((rest, ""));
        let (first, last) = (self.parse_one(first)?, self.parse_one(last)?);
        let unreadable = || KnobError::Unreadable { knob: self, text: text.to_string() };
        let step = if step.is_empty() { Some(1) } else { self.number(step) };
        let step =
            step.filter(|step| *step > 0 && first <= last && !text.ends_with(':')).ok_or_else(unreadable)?;
        let count = (last - first) / step + 1;
        if count > LARGEST_RANGE {
            return Err(KnobError::LongRange { knob: self, text: text.into(), count, most: LARGEST_RANGE });
        }
        let values: Vec<u64> = (0..count).map(|index| first + index * step).collect();
        values.iter().try_for_each(|&value| self.check(value))?;
        Ok(values)
    }

    /// A plain number, or a size turned into the knob's unit.
    fn number(self, text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().ok()?;
        let shift = match &text[digits..] {
            "" => return Some(number),
            "K" | "k" => 10,
            "M" | "m" => 20,
            "G" | "g" => 30,
            "T" | "t" => 40,
            _ => return None,
        };
        let bytes = number.checked_mul(1 << shift)?;
        let unit = self.unit_bytes()?;
        (bytes % unit == 0).then_some(bytes / unit)
    }

    /// Bytes of the knob's unit; `None` where it counts something else than memory.
    pub fn unit_bytes(self) -> Option<u64> {
        match self.spec().unit {
            "bytes" => Some(1),
            "KiB" => Some(1 << 10),
            // The kernel's MB of a rate are of 2^20 bytes, too (docs/rules/numa-balancing-and-tiers.md#numa-balancing).
            "MiB" | "MB/s" => Some(1 << 20),
            "pages" => Some(crate::ground::ids::PAGE_SIZE),
            _ => None,
        }
    }

    /// What gives `value` to a running kernel: a file and the text to write. `line` is what the file holds now, where it is one
    /// number of several; without it the others are the kernel's defaults. `None` where no file takes it: there is none,
    /// or the value means "as the kernel chooses".
    pub fn file_text(self, value: u64, line: Option<&str>) -> Option<FileText> {
        let computed = self.spec().computed == Some(value);
        let ours = self.words().iter().any(|word| word.value == value && !word.in_file);
        if computed || ours {
            return None;
        }
        match self.spec().stands_for {
            StandsFor::Sysctl(path) | StandsFor::Sysfs(path) => {
                Some(FileText { path, text: self.written(value).to_string() })
            }
            StandsFor::SysctlNumber { path, place } => {
                let mut numbers = line.map_or_else(|| defaults_of_line(path), numbers_of);
                *numbers.get_mut(place)? = value;
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                Some(FileText { path, text: numbers.join(" ") })
            }
            StandsFor::Cgroup { .. }
            | StandsFor::Tools(_)
            | StandsFor::BootParameter(_)
            | StandsFor::Nothing(_) => None,
        }
    }

    /// The line for a root shell that does what [`Self::file_text`] says.
    pub fn command(self, value: u64, line: Option<&str>) -> Option<String> {
        self.file_text(value, line).map(|FileText { path, text }| format!("echo {text} > {path}"))
    }

    /// The same for a file of a cgroup, of which only the file's name is known: `echo 512 > FOLDER/memory.max`.
    pub fn command_in(self, folder: &str, value: u64) -> Option<String> {
        let StandsFor::Cgroup { file, .. } = self.spec().stands_for else { return None };
        Some(format!("echo {} > {folder}/{file}", self.written(value)))
    }

    /// A value that shows how the file is written to: the default, where that is one.
    pub fn example(self) -> u64 {
        let common = 65_536;
        if self.command(self.spec().default, None).is_some() || self.check(common).is_err() {
            return self.spec().default;
        }
        common
    }
}

/// The numbers of a line as /proc/sys prints it.
fn numbers_of(line: &str) -> Vec<u64> {
    line.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect()
}

/// The defaults of all knobs that share the file at `path`, in its order. A file takes fewer numbers than it holds and
/// leaves the others as they are.
fn defaults_of_line(path: &str) -> Vec<u64> {
    let in_file = |spec: &&super::KnobSpec| matches!(spec.stands_for, StandsFor::SysctlNumber { path: of, .. } if of == path);
    KNOBS.iter().filter(in_file).map(|spec| spec.default).collect()
}
