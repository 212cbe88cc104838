//! What each knob that was set did in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a knob did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnobOutcome {
    /// A decision came out different from what the knob's default would have decided.
    Acted,
    /// Rules read it, or could have, and never decided otherwise.
    #[default]
    Consulted,
    /// Every value that was set is the knob's default.
    AtDefault,
    /// It cannot act on this workload, policy or machine, and was set all the same (`--force`).
    RefusedButForced,
}

/// What a knob did, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnobUses {
    /// What came of it.
    pub outcome: KnobOutcome,
    /// Times that a rule read it.
    pub consulted: u64,
    /// Those of them in which its default would have decided otherwise.
    pub differed: u64,
    /// How near it came to deciding otherwise, or why it could not, in words; empty where there is nothing to compare.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nearest: String,
    /// How far that was from where the decision would turn, in the mechanism's unit; `None` where nothing was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u64>,
}

impl KnobUses {
    /// Takes in what the knob did in another repetition, or with another value: it acted if it did so in any, and came as near as in
    /// the nearest.
    pub fn add(&mut self, other: &Self) {
        if self.outcome == KnobOutcome::AtDefault && other.outcome != KnobOutcome::AtDefault {
            (self.outcome, self.distance, self.nearest) =
                (other.outcome, other.distance, other.nearest.clone());
        }
        let is_nearer = other.distance.is_some_and(|near| self.distance.is_none_or(|own| near < own));
        if is_nearer && self.outcome == KnobOutcome::Consulted {
            (self.distance, self.nearest) = (other.distance, other.nearest.clone());
        }
        self.consulted += other.consulted;
        self.differed += other.differed;
        if other.outcome == KnobOutcome::Acted {
            *self = Self { outcome: KnobOutcome::Acted, nearest: String::new(), ..self.clone() };
        }
    }

    /// In one line, without the knob's name.
    pub fn sentence(&self) -> String {
        let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let consulted = match self.consulted {
            0 => "never consulted".to_owned(),
            count => format!("consulted {}", times(count)),
        };
        let said = match self.outcome {
            KnobOutcome::Acted => {
                return format!(
                    "acted: {} of {} decisions differ from its default's",
                    self.differed, self.consulted
                );
            }
            KnobOutcome::RefusedButForced => format!("forced, it cannot act here; {consulted}"),
            KnobOutcome::AtDefault => format!("set to its default; {consulted}"),
            KnobOutcome::Consulted if self.consulted == 0 => consulted,
            KnobOutcome::Consulted => format!("{consulted}, never decided otherwise than its default"),
        };
        if self.nearest.is_empty() { said } else { format!("{said}: {}", self.nearest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_say_the_nearest_of_them() {
        let uses = |outcome, distance: Option<u64>| KnobUses {
            outcome,
            consulted: 2,
            nearest: distance.map_or_else(String::new, |pages| format!("{pages} pages away")),
            distance,
            ..KnobUses::default()
        };
        let together = |others: &[KnobUses]| {
            let mut sum = others[0].clone();
            others[1..].iter().for_each(|other| sum.add(other));
            (sum.outcome, sum.consulted, sum.nearest)
        };
        let [far, near, none] =
            [Some(9), Some(3), None].map(|distance| uses(KnobOutcome::Consulted, distance));
        let said = (KnobOutcome::Consulted, 6, "3 pages away".to_owned());
        assert_eq!(together(&[far.clone(), near.clone(), none.clone()]), said);
        assert_eq!(together(&[none, near, far.clone()]), said);
        let default = uses(KnobOutcome::AtDefault, None);
        assert_eq!(together(&[default.clone(), default.clone()]), (KnobOutcome::AtDefault, 4, String::new()));
        let said = (KnobOutcome::Consulted, 4, "9 pages away".to_owned());
        assert_eq!(together(&[default.clone(), far.clone()]), said);
        assert_eq!(together(&[far.clone(), default]), said);
        let acted = uses(KnobOutcome::Acted, None);
        assert_eq!(together(&[far, acted]), (KnobOutcome::Acted, 4, String::new()));
    }

    #[test]
    fn each_outcome_has_its_sentence() {
        let uses = |outcome, consulted, differed, nearest: &str| {
            KnobUses { outcome, consulted, differed, nearest: nearest.to_owned(), ..KnobUses::default() }
                .sentence()
        };
        let said = [
            uses(KnobOutcome::Acted, 9, 2, ""),
            uses(KnobOutcome::Consulted, 9, 0, "free memory never came below 3 GiB"),
            uses(KnobOutcome::Consulted, 1, 0, ""),
            uses(KnobOutcome::Consulted, 0, 0, ""),
            uses(KnobOutcome::AtDefault, 9, 0, ""),
            uses(KnobOutcome::RefusedButForced, 0, 0, "there are no files"),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        acted: 2 of 9 decisions differ from its default's
        consulted 9 times, never decided otherwise than its default: free memory never came below 3 GiB
        consulted once, never decided otherwise than its default
        never consulted
        set to its default; consulted 9 times
        forced, it cannot act here; never consulted: there are no files
        ");
    }
}
