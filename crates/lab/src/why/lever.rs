//! The two sides of a question, and the levers between them: each is a rule, a part or a knob that can be moved from the first
//! side's value to the second's by itself.

use mm::policy::Difference;
use mm::version::Version;
use mm::{Knob, Policy};

use super::taken::{Midway, Mixture, Taken};
use crate::measurements::CauseStep;
use crate::subject::Side;

/// What lies between two sides.
#[derive(Debug)]
pub(super) struct Levers {
    from: Side,
    to: Side,
    all: Vec<Lever>,
}

/// Something in which the sides differ.
#[derive(Debug)]
pub(super) enum Lever {
    /// A rule or a part.
    Rule(Difference),
    /// A knob, with its values on both sides: `None` where it is not set.
    Knob { knob: Knob, from: Option<u64>, to: Option<u64> },
}

impl Levers {
    /// Everything in which `from` and `to` differ; `None` if that is more than can be told apart.
    pub(super) fn between(from: Side, to: Side) -> Option<Self> {
        let rules = from.policy.differences(&to.policy).into_iter().map(Lever::Rule);
        let mut knobs: Vec<Knob> = from.knobs.iter().map(|(knob, _)| *knob).collect();
        let new = to.knobs.iter().map(|(knob, _)| *knob).filter(|knob| from.value(*knob).is_none());
        knobs.extend(new);
        let moved = knobs.into_iter().filter(|&knob| from.value(knob) != to.value(knob));
        let knobs = moved.map(|knob| Lever::Knob { knob, from: from.value(knob), to: to.value(knob) });
        let all: Vec<Lever> = rules.chain(knobs).collect();
        (all.len() <= Taken::MOST).then_some(Self { from, to, all })
    }

    /// The first side.
    pub(super) fn from(&self) -> &Side {
        &self.from
    }

    /// The second side.
    pub(super) fn to(&self) -> &Side {
        &self.to
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them moved: the second side.
    pub(super) fn every(&self) -> Taken {
        Taken::first(self.len())
    }

    /// The lever of this number.
    pub(super) fn get(&self, index: usize) -> &Lever {
        &self.all[index]
    }

    /// What a mixture makes of the first side.
    pub(super) fn side(&self, mixture: Mixture) -> Side {
        let side = self.moved(mixture.taken);
        let Some(midway) = mixture.midway else { return side };
        let (Lever::Rule(rule), Some(kernel)) = (&self.all[midway.lever], self.kernel_at(midway)) else {
            return side;
        };
        Side { policy: side.policy.toward(&Policy::linux(kernel), &[&rule.name]), ..side }
    }

    /// The kernel of which a rule that is midway is.
    fn kernel_at(&self, midway: Midway) -> Option<Version> {
        let Lever::Rule(Difference { steps, .. }) = &self.all[midway.lever] else { return None };
        let last = if self.goes_up() {
            midway.steps.checked_sub(1)?
        } else {
            steps.len().checked_sub(1 + midway.steps)?
        };
        steps.get(last).map(|step| step.since)
    }

    /// Whether the second side's kernel is the newer one.
    pub(super) fn goes_up(&self) -> bool {
        self.from.policy.kernel() < self.to.policy.kernel()
    }

    fn moved(&self, taken: Taken) -> Side {
        if taken == self.every() {
            return self.to.clone();
        }
        let moved = || taken.indices().map(|index| &self.all[index]);
        let names: Vec<&str> = moved().filter_map(Lever::rule).collect();
        let mut knobs = self.from.knobs.clone();
        for lever in moved() {
            if let Lever::Knob { knob, to, .. } = *lever {
                let place = knobs.iter().position(|(other, _)| *other == knob);
                match (place, to) {
                    (Some(at), Some(value)) => knobs[at].1 = value,
                    (Some(at), None) => _ = knobs.remove(at),
                    (None, Some(value)) => knobs.push((knob, value)),
                    (None, None) => {}
                }
            }
        }
        Side { policy: self.from.policy.toward(&self.to.policy, &names), knobs }
    }
}

impl Lever {
    fn rule(&self) -> Option<&str> {
        match self {
            Self::Rule(difference) => Some(&difference.name),
            Self::Knob { .. } => None,
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Rule(difference) => difference.name.clone(),
            Self::Knob { knob, .. } => knob.spec().name.to_owned(),
        }
    }

    /// What it decides.
    pub(super) fn about(&self) -> String {
        match self {
            Self::Rule(difference) => difference.question.clone(),
            Self::Knob { knob, .. } => knob.spec().meaning.to_owned(),
        }
    }

    /// What it says on both sides.
    pub(super) fn says(&self) -> [String; 2] {
        match self {
            Self::Rule(difference) => [difference.from.clone(), difference.to.clone()],
            Self::Knob { knob, from, to } => [from, to].map(|value| {
                value.map_or_else(|| "not set".to_owned(), |value| knob.written(value).to_string())
            }),
        }
    }

    /// What kernels changed about it between the two.
    pub(super) fn steps(&self) -> Vec<CauseStep> {
        let Self::Rule(difference) = self else { return vec![] };
        let step = |step: &mm::policy::RuleStep| CauseStep {
            version: step.since.to_string(),
            says: step.answer.clone(),
            commit: step.commit.to_owned(),
            alone: None,
        };
        difference.steps.iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use mm::policy::FreeHighRule;

    use super::*;

    fn side(policy: &str, knobs: &[(Knob, u64)]) -> Side {
        Side { policy: Policy::parse(policy).unwrap(), knobs: knobs.to_vec() }
    }

    #[test]
    fn levers_are_rules_and_knobs_and_lead_from_one_side_to_the_other() {
        let from = side("linux-5.17", &[(Knob::MinFreeKbytes, 4096)]);
        let to = side("linux-5.18", &[(Knob::MinFreeKbytes, 8192), (Knob::WatermarkScaleFactor, 20)]);
        let levers = Levers::between(from.clone(), to.clone()).unwrap();
        let names: Vec<String> = (0..levers.len()).map(|index| levers.get(index).name()).collect();
        assert_eq!(names, ["free-high", "check", "vm.min_free_kbytes", "vm.watermark_scale_factor"]);
        assert_eq!(levers.get(3).says(), ["not set", "20"]);
        assert_eq!(levers.side(Taken::NONE.into()), from);
        assert_eq!(levers.side(levers.every().into()), to);
        let mixed = levers.side(Taken::one(0).and(Taken::one(3)).into());
        assert_eq!(mixed.knobs, [(Knob::MinFreeKbytes, 4096), (Knob::WatermarkScaleFactor, 20)]);
        assert_eq!(mixed.policy.name(), "linux-5.17 with free-high of linux-5.18");
        let back = Levers::between(to, from.clone()).unwrap();
        assert_eq!(back.side(back.every().without(Taken::one(3)).into()).knobs.len(), 2);
        assert_eq!(back.side(Taken::one(3).into()).knobs, [(Knob::MinFreeKbytes, 8192)]);
    }

    #[test]
    fn a_rule_of_several_steps_is_stopped_between_them() {
        let said = |from: &str, to: &str, steps: usize| {
            let levers = Levers::between(side(from, &[]), side(to, &[])).unwrap();
            let lever = (0..levers.len()).find(|&index| levers.get(index).name() == "free-high").unwrap();
            let midway = Some(Midway { lever, steps });
            levers.side(Mixture { taken: Taken::NONE, midway }).policy.rules().lists.free_high
        };
        assert_eq!(said("linux-5.17", "linux-6.18", 1), FreeHighRule::AfterDrain);
        assert_eq!(said("linux-5.17", "linux-6.18", 2), FreeHighRule::Sequence);
        assert_eq!(said("linux-6.18", "linux-5.17", 1), FreeHighRule::Sequence);
        assert_eq!(said("linux-6.18", "linux-5.17", 2), FreeHighRule::AfterDrain);
        assert_eq!(said("linux-5.17+yield", "linux-6.18", 2), FreeHighRule::Sequence);
    }
}
