//! Scripts of experiments: the language of scenes, read so that a mistake is an error, in one line that says which line of the script,
//! what is wrong with it and what it may be. Scenes passed over words that they did not know; an experiment that did would measure
//! something else than it says.
//!
//! Operations that scenes do not have: `compute NS`, `take SIZE`, `for MS … end`, `time LABEL … end`, parts of what `lock` names, and counters
//! behind `mark LABEL`. What the simulated machine has from its start (`machine`, `swapon`) is not a script's, and says which knob it is.

mod forms;
mod scope;
#[cfg(test)]
mod tests;

use self::forms::Taken;
use self::scope::Scope;
use super::program::What;

/// Lines of a script.
const MOST_LINES: usize = 400;
/// Blocks within each other.
const DEEPEST: usize = 16;

/// A line of a script that does something.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Step {
    /// Its number in the text, from 1.
    pub(crate) number: usize,
    pub(crate) act: Act,
}

/// What a line does.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Act {
    /// An operation that scenes have too; never `mark`.
    Does(What),
    /// The task's own work, ns.
    Compute(u64),
    /// Base pages that the kernel takes for good.
    Take(u64),
    /// A label, and counters that are looked at.
    Mark { label: Label, counters: Vec<String> },
    /// The steps up to `end` (not with it) are a child's; its parent waits, or goes on.
    Fork { end: usize, waits: bool },
    /// The steps up to `end`, so often.
    Repeat { end: usize, times: u64 },
    /// The steps up to `end`, again and again for so many ms.
    For { end: usize, ms: u64 },
    /// The steps up to `end` are timed.
    Time { end: usize, label: Label },
}

/// What samples are called. Where it was written with `#`, that stands for the number of the round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Label(String);

impl Label {
    /// The name in the `round` of the innermost `repeat`, from 1.
    pub(crate) fn in_round(&self, round: u64) -> String {
        self.0.replace('#', &round.to_string())
    }
}

/// A block that is open.
struct Open {
    line: usize,
    word: &'static str,
    /// Its step; its end is still to be said.
    step: usize,
}

/// Reads a script.
///
/// # Errors
/// The first line that cannot be understood, why, and what it may be.
pub(crate) fn read(text: &str) -> Result<Vec<Step>, String> {
    let (mut steps, mut open, mut scope) = (vec![], vec![], Scope::default());
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let at = |why: String| format!("line {number}: {why}");
        if index >= MOST_LINES {
            return Err(at(format!("a script has at most {MOST_LINES} lines; use repeat")));
        }
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        if words.is_empty() {
            continue;
        }
        match forms::take(&words).map_err(at)? {
            Taken::End => close(&mut steps, &mut open, &mut scope).map_err(at)?,
            Taken::Act(act) => {
                scope.check(words[0], &act).map_err(at)?;
                if let Some(word) = scope::block(&act) {
                    if open.len() >= DEEPEST {
                        return Err(at(format!("blocks lie within each other {DEEPEST} deep at most")));
                    }
                    scope.begin(&act);
                    open.push(Open { line: number, word, step: steps.len() });
                }
                steps.push(Step { number, act });
            }
        }
    }
    match open.pop() {
        Some(Open { line, word, .. }) => Err(format!("line {line}: `{word}` has no `end`")),
        None if steps.is_empty() => {
            Err("there is no operation in it; write one a line, as in `map a 1M`".into())
        }
        None => Ok(steps),
    }
}

/// `end`: the innermost block is over.
fn close(steps: &mut [Step], open: &mut Vec<Open>, scope: &mut Scope) -> Result<(), String> {
    let all = steps.len();
    let block =
        open.pop().ok_or("`end` ends nothing: there is no fork, spawn, repeat, for or time before it")?;
    match &mut steps[block.step].act {
        Act::Fork { end, .. } | Act::Repeat { end, .. } | Act::For { end, .. } | Act::Time { end, .. } => {
            *end = all;
        }
        _ => {}
    }
    scope.end();
    Ok(())
}
