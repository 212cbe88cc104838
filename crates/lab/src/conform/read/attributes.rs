//! What /sys/kernel/slab says of a cache: its files, and the counts in them by CPU and by node.

use super::sections::{FormatError, Section, clip, number};

/// The files of a cache, as they were read one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::conform) struct FileOrder {
    /// How many there are.
    pub(in crate::conform) files: u64,
    /// How many were read from `free_frozen` on until `free_slowpath`.
    pub(in crate::conform) between_frees: u64,
}

/// The files of a cache, name and text, in the order in which they were read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::conform) struct Attributes(Vec<(String, String)>);

impl FromIterator<(String, String)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

impl Attributes {
    pub(super) fn of(section: &Section<'_>) -> Self {
        let pairs = section.lines.iter().filter_map(|(_, text)| text.split_once('='));
        pairs.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect()
    }

    /// The text of a file, if there is one.
    pub(in crate::conform) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str())
    }

    /// How many files were read, and where those of frees stand among them.
    pub(in crate::conform) fn order(&self) -> FileOrder {
        let place = |name| self.0.iter().position(|(file, _)| file == name);
        let between = place("free_frozen").zip(place("free_slowpath"));
        let between_frees = between.map_or(0, |(frozen, slow)| slow.abs_diff(frozen) as u64);
        FileOrder { files: self.0.len() as u64, between_frees }
    }

    /// The number that a file begins with.
    pub(in crate::conform) fn need(&self, name: &str) -> Result<u32, FormatError> {
        let text = self.get(name).ok_or_else(|| FormatError::new(0, format!("there is no {name}")))?;
        number(0, name, text.split_whitespace().next().unwrap_or_default())
    }

    /// The highest index that a count by CPU (`C`) or by node (`N`) has in any file.
    pub(in crate::conform) fn highest(&self, letter: char) -> Option<u16> {
        let words = self.0.iter().flat_map(|(_, text)| text.split_whitespace());
        let indices = words.filter_map(|word| word.strip_prefix(letter)?.split_once('=')?.0.parse().ok());
        indices.max()
    }

    /// What each of `cpus` CPUs counted, `81 C0=32 C1=49`; `None` if there is no such counter.
    pub(in crate::conform) fn counts(
        &self,
        name: &str,
        cpus: usize,
    ) -> Result<Option<Vec<u64>>, FormatError> {
        self.counts_by(name, 'C', cpus)
    }

    /// The counts of a file by CPU (`C`) or by node (`N`), of `parts` of them; `None` if there is no such file.
    pub(in crate::conform) fn counts_by(
        &self,
        name: &str,
        letter: char,
        parts: usize,
    ) -> Result<Option<Vec<u64>>, FormatError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let mut counts = vec![0; parts];
        for word in text.split_whitespace().skip(1) {
            let broken = || FormatError::new(0, format!("{name} says '{}'", clip(word)));
            let (part, count) =
                word.strip_prefix(letter).and_then(|word| word.split_once('=')).ok_or_else(broken)?;
            let part: usize = number(0, name, part)?;
            *counts.get_mut(part).ok_or_else(broken)? = number(0, name, count)?;
        }
        Ok(Some(counts))
    }
}
