//! A plan: which knobs are to have which values, as a person writes it or a command leaves it. A line each, as in sysctl.conf:
//! `transparent_hugepage.enabled = madvise`; what stands behind `#` is a comment.

use std::fmt;

use mm::{Knob, KnobError};

use crate::measurements::TuneCandidate;

/// Knobs with the values that they are to have, each knob once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    settings: Vec<(Knob, u64)>,
}

/// Why a text is no plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// A line that is not `NAME = VALUE`.
    Form {
        /// Its number, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// No such knob, or a value that it does not take.
    Knob {
        /// The line's number, from 1.
        line: usize,
        /// Why.
        error: KnobError,
    },
    /// A knob that an earlier line sets too.
    Twice {
        /// The line's number, from 1.
        line: usize,
        /// The knob.
        knob: Knob,
    },
    /// No line sets anything.
    Empty,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { line, text } => write!(f, "line {line}: `{text}` is not KNOB = VALUE"),
            Self::Knob { line, error } => write!(f, "line {line}: {error}"),
            Self::Twice { line, knob } => {
                write!(f, "line {line}: {} is set by an earlier line, too", knob.spec().name)
            }
            Self::Empty => f.write_str("it sets nothing; a line of a plan is KNOB = VALUE"),
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// A plan of these settings, of which each knob is set once.
    pub fn of(settings: Vec<(Knob, u64)>) -> Self {
        Self { settings }
    }

    /// Reads a plan's text.
    ///
    /// # Errors
    /// The first line that is none, or that there is none.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let mut settings: Vec<(Knob, u64)> = vec![];
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let form = || PlanError::Form { line, text: text.to_owned() };
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            let at = |error| PlanError::Knob { line, error };
            let knob = Knob::from_name(name.trim()).map_err(at)?;
            let value = knob.parse_one(value.trim()).map_err(at)?;
            if settings.iter().any(|(other, _)| *other == knob) {
                return Err(PlanError::Twice { line, knob });
            }
            settings.push((knob, value));
        }
        if settings.is_empty() { Err(PlanError::Empty) } else { Ok(Self { settings }) }
    }

    /// The plan that a setting of `tune` comes to.
    ///
    /// # Errors
    /// That it sets nothing.
    pub fn of_candidate(candidate: &TuneCandidate) -> Result<Self, PlanError> {
        let lines = candidate.knobs.iter().map(|set| format!("{} = {}\n", set.knob, set.value));
        Self::parse(&lines.collect::<String>())
    }

    /// The settings, in their order.
    pub fn settings(&self) -> &[(Knob, u64)] {
        &self.settings
    }
}

/// As [`Plan::parse`] reads it back.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut settings = self.settings.iter();
        settings.try_for_each(|&(knob, value)| writeln!(f, "{} = {}", knob.spec().name, knob.written(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_back_as_it_is_written() {
        let text = "# from a replay\n\ntransparent_hugepage.enabled = madvise   # not always\nvm.min_free_kbytes=64M\n";
        let plan = Plan::parse(text).unwrap();
        assert_eq!(plan.settings(), [(Knob::TransparentHugepage, 2), (Knob::MinFreeKbytes, 65536)]);
        assert_eq!(plan.to_string(), "transparent_hugepage.enabled = madvise\nvm.min_free_kbytes = 65536\n");
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
    }

    #[test]
    fn what_is_no_plan_is_refused_by_line() {
        let refused = |text: &str| Plan::parse(text).unwrap_err().to_string();
        let all = [
            "",
            "# nothing\n",
            "\nvm.swappiness",
            "vm.swapiness = 3",
            "vm.swappiness = many",
            "vm.swappiness = 1\nvm.swappiness = 2",
        ];
        insta::assert_snapshot!(all.map(refused).join("\n"), @r"
        it sets nothing; a line of a plan is KNOB = VALUE
        it sets nothing; a line of a plan is KNOB = VALUE
        line 2: `vm.swappiness` is not KNOB = VALUE
        line 1: no knob is called 'vm.swapiness'
        line 1: vm.swappiness = many cannot be: it takes a number or a range with a step (0-100:20)
        line 2: vm.swappiness is set by an earlier line, too
        ");
    }
}
