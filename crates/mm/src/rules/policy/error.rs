//! Why a name is not a policy: its form is unknown, its kernel has no rules here, or its kernel never existed.

use alloc::string::String;
use core::fmt;

use super::{DEFAULT_POLICY, FREEHOLD, NEWEST, OLDEST, parts, tier};
use crate::ground::Version;

/// No policy has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyError {
    /// The name.
    pub name: String,
    /// Why there is none.
    pub why: Refusal,
}

/// Why there is no such policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Neither a kernel's name nor one of ours, or a part that there is not.
    Unknown,
    /// A kernel before [`OLDEST`].
    TooOld(Version),
    /// A kernel after [`NEWEST`]: nobody has read its rules.
    TooNew(Version),
    /// Linux never had this release; `last` was the last of that number.
    NeverReleased {
        /// What was asked for.
        version: Version,
        /// The last release with the same first number.
        last: Version,
    },
}

/// The last release of each first number that is complete.
const LAST_RELEASES: &[Version] =
    &[Version::new(3, 19), Version::new(4, 20), Version::new(5, 19), Version::new(6, 19)];

/// Checks that there are rules for `version`.
///
/// # Errors
/// Why there are none.
pub fn check_version(version: Version) -> Result<(), Refusal> {
    if version < OLDEST {
        return Err(Refusal::TooOld(version));
    }
    let last = LAST_RELEASES.iter().find(|last| last.major == version.major);
    match last {
        Some(&last) if version > last => Err(Refusal::NeverReleased { version, last }),
        _ if version > NEWEST => Err(Refusal::TooNew(version)),
        _ => Ok(()),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("that name is unknown"),
            Self::TooOld(version) => {
                write!(f, "there are no rules for Linux {version}: the oldest known here is linux-{OLDEST}")
            }
            Self::TooNew(version) => {
                write!(
                    f,
                    "nobody has read the rules of Linux {version}: the newest known here is linux-{NEWEST}"
                )
            }
            Self::NeverReleased { version, last } => {
                write!(f, "there never was a Linux {version}: linux-{last} was the last {}.x", last.major)
            }
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.why != Refusal::Unknown {
            return write!(f, "no policy is called '{}': {}", self.name, self.why);
        }
        write!(
            f,
            "no policy is called '{}'; linux-X.Y from {OLDEST} to {NEWEST} is, for example {DEFAULT_POLICY}, {FREEHOLD}",
            self.name
        )?;
        tier::KMMSCAND.iter().try_for_each(|(name, ..)| write!(f, ", {name}"))?;
        f.write_str(", each with any of")?;
        parts::PARTS.iter().try_for_each(|part| write!(f, " +{}", part.name))
    }
}

impl core::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use crate::rules::policy::Policy;

    #[test]
    fn kernels_that_nobody_has_read_or_that_never_were_are_refused_by_name() {
        let message = |name: &str| Policy::parse(name).unwrap_err().to_string();
        for newer in ["linux-9.9", "linux-7.3", "linux-8.0"] {
            assert!(message(newer).ends_with("the newest known here is linux-7.2"), "{}", message(newer));
        }
        for (never, last) in
            [("3.20", "3.19"), ("4.21", "4.20"), ("5.25", "5.19"), ("6.30", "6.19"), ("6.99", "6.19")]
        {
            let name = alloc::format!("linux-{never}");
            let expected = alloc::format!("there never was a Linux {never}: linux-{last} was the last");
            assert!(message(&name).contains(&expected), "{}", message(&name));
        }
        assert!(message("linux-2.6").ends_with("the oldest known here is linux-3.0"));
        for known in
            ["linux-3.0", "linux-3.19", "linux-4.20", "linux-5.19", "linux-6.19", "linux-7.0", "linux-7.2"]
        {
            assert!(Policy::parse(known).is_ok(), "{known}");
        }
    }
}
