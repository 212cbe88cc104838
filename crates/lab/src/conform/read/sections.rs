//! Text files of a stock kernel's own words: sections that begin with a line `@@name`. What comes before the first (a
//! serial console's greeting) is passed over, and so is every section that nobody asks for.

use std::fmt;

/// A line of a file that cannot be read, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatError {
    /// The line, counted from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl FormatError {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for FormatError {}

/// The lines of a section, with their numbers in the file.
#[derive(Clone, Debug)]
pub(in crate::conform) struct Section<'a> {
    name: &'a str,
    pub(in crate::conform) lines: Vec<(usize, &'a str)>,
}

impl<'a> Section<'a> {
    /// A text that is one section.
    pub(in crate::conform) fn whole(text: &'a str) -> Self {
        Self { name: "", lines: text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect() }
    }
}

/// A file's sections, in order.
#[derive(Clone, Debug)]
pub(in crate::conform) struct Sections<'a>(Vec<Section<'a>>);

impl<'a> Sections<'a> {
    pub(in crate::conform) fn of(text: &'a str) -> Self {
        let mut sections: Vec<Section<'a>> = vec![];
        for (index, line) in text.lines().enumerate() {
            match (line.strip_prefix("@@"), sections.last_mut()) {
                (Some(name), _) => sections.push(Section { name: name.trim(), lines: vec![] }),
                (None, Some(section)) => section.lines.push((index + 1, line)),
                (None, None) => {}
            }
        }
        Self(sections)
    }

    /// The first section called `name`.
    pub(in crate::conform) fn get(&self, name: &str) -> Option<&Section<'a>> {
        self.0.iter().find(|section| section.name == name)
    }

    /// The same, where the file is of no use without it.
    pub(in crate::conform) fn need(&self, name: &str) -> Result<&Section<'a>, FormatError> {
        self.get(name).ok_or_else(|| FormatError::new(0, format!("there is no section @@{name}")))
    }

    /// The first line of a section, without blanks; empty if there is none.
    pub(in crate::conform) fn word(&self, name: &str) -> &'a str {
        self.get(name).and_then(|section| section.lines.first()).map_or("", |(_, line)| line.trim())
    }
}

/// Reads `text` as a number.
pub(in crate::conform) fn number<N: std::str::FromStr>(
    line: usize,
    what: &str,
    text: &str,
) -> Result<N, FormatError> {
    text.trim()
        .parse()
        .map_err(|_| FormatError::new(line, format!("{what} is '{}', not a number in range", clip(text))))
}

/// The beginning of a text from a file, for a message of one line.
pub(in crate::conform) fn clip(text: &str) -> String {
    let mut shown: String = text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 40 {
        shown.push('…');
    }
    shown
}

/// Reads a list of numbers as the kernel writes sets: `0-3,8`.
pub(in crate::conform) fn number_set(line: usize, what: &str, text: &str) -> Result<Vec<u16>, FormatError> {
    let mut set = vec![];
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (number(line, what, first)?, number(line, what, last)?);
        if last < first || last - first > 4096 {
            return Err(FormatError::new(line, format!("{what} '{}' is no range", clip(part))));
        }
        set.extend(first..=last);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_first_section_is_passed_over() {
        let sections = Sections::of("boot\n@@a\n1\n2\n@@b\n");
        assert_eq!(sections.word("a"), "1");
        assert_eq!(sections.need("a").unwrap().lines, [(3, "1"), (4, "2")]);
        assert_eq!(sections.word("b"), "");
        assert_eq!(sections.need("c").unwrap_err().to_string(), "there is no section @@c");
    }

    #[test]
    fn sets_are_ranges_and_single_numbers() {
        assert_eq!(number_set(1, "CPUs", "0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(number_set(1, "CPUs", "").unwrap(), [0u16; 0]);
        assert!(number_set(1, "CPUs", "3-1").is_err());
        assert!(number_set(1, "CPUs", "0-70000").is_err());
    }
}
