//! Kernel versions and the ranges in which a rule holds.

use core::fmt;

/// A kernel version, as far as rules depend on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// 6 of 6.18.
    pub major: u8,
    /// 18 of 6.18.
    pub minor: u8,
}

impl Version {
    /// Version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// Reads `6.18`, `6.18.15` or `6.18.15+deb13-amd64`; `None` if it does not begin with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, rest) = text.split_once('.')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some(Self { major: major.parse().ok()?, minor: rest[..digits].parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A rule, the first version that has it, and the commit that brought it (abbreviated; empty where nobody wrote it down). It holds
/// until the next one in its history begins.
#[derive(Clone, Copy, Debug)]
pub struct Since<R>(pub Version, pub R, pub &'static str);

/// The rule that holds in `version`, of a history in ascending order; the first one also for what came before.
pub fn at<R: Copy>(history: &[Since<R>], version: Version) -> R {
    let begun = history.iter().take_while(|since| since.0 <= version).last();
    begun.unwrap_or(&history[0]).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_release_names() {
        assert_eq!(Version::parse("6.18.15+deb13-amd64"), Some(Version::new(6, 18)));
        assert_eq!(Version::parse("7.2"), Some(Version::new(7, 2)));
        assert_eq!(Version::parse("6"), None);
        assert_eq!(Version::parse("6.x"), None);
    }

    #[test]
    fn a_rule_holds_until_the_next_begins() {
        let history = [Since(Version::new(5, 14), 'a', ""), Since(Version::new(6, 7), 'b', "")];
        assert_eq!(at(&history, Version::new(4, 9)), 'a');
        assert_eq!(at(&history, Version::new(6, 6)), 'a');
        assert_eq!(at(&history, Version::new(6, 7)), 'b');
        assert_eq!(at(&history, Version::new(7, 2)), 'b');
    }
}
