//! Each knob, on a workload on which it acts and on one on which it rests. It acts: what was measured differs from the
//! default's, and the program says that it acted. It rests: both measure the same to the bit, and the program does not say
//! that it acted, though it does not refuse the knob there either.

mod cases;
mod ground;
mod workloads;

use freehold_lab::measurements::{KnobOutcome, KnobUses, Run};
use freehold_lab::scene::Outcome;
use mm::{KNOBS, Knob};
use sim::Measurements;

use ground::Ground;

/// A knob, a value other than its default, where that acts and where it does not.
struct Case {
    knob: Knob,
    value: u64,
    acts: Ground,
    /// `None`: it acts wherever there are address spaces, and is refused where there are none.
    rests: Option<Ground>,
}

/// What was measured, without what says how it was set.
fn measured(outcome: &Outcome) -> (Run, Measurements) {
    let (knobs, knob_uses, notes) = Default::default();
    let run = Run { wall_ns: 0, knobs, knob_uses, notes, ..outcome.run.clone() };
    (run, Measurements { knobs: vec![], ..outcome.measured.clone() })
}

/// What a workload came to with the default and with the value.
struct Pair {
    by_default: Outcome,
    other: Outcome,
}

impl Pair {
    fn measures_the_same(&self) -> bool {
        measured(&self.by_default) == measured(&self.other)
    }
}

impl Case {
    fn on(&self, ground: &Ground) -> Pair {
        assert_ne!(self.value, self.knob.spec().default, "{}", self.knob.spec().name);
        let [by_default, other] =
            [self.knob.spec().default, self.value].map(|value| ground.run(&[(self.knob, value)]));
        Pair { by_default, other }
    }

    fn uses<'a>(&self, outcome: &'a Outcome) -> &'a KnobUses {
        &outcome.run.knob_uses[self.knob.spec().name]
    }

    fn is_refused(&self, ground: &Ground) -> bool {
        !ground.refused(&[(self.knob, self.value)]).is_empty()
    }

    fn fault_where_it_acts(&self) -> Option<String> {
        let pair = self.on(&self.acts);
        let fault = if self.is_refused(&self.acts) {
            "it is refused where it is to act"
        } else if pair.measures_the_same() {
            "both values measure the same where it is to act"
        } else if self.uses(&pair.other).outcome != KnobOutcome::Acted {
            "the values measure otherwise, and it is not said to have acted"
        } else if self.uses(&pair.by_default).outcome == KnobOutcome::Acted {
            "its default is said to have acted"
        } else {
            return None;
        };
        Some(self.says(fault, &pair))
    }

    fn fault_where_it_rests(&self) -> Option<String> {
        let rests = self.rests.as_ref()?;
        let pair = self.on(rests);
        let fault = if self.is_refused(rests) {
            "it is refused where it is to rest"
        } else if !pair.measures_the_same() {
            "the values measure otherwise where it is to rest"
        } else if self.uses(&pair.other).outcome == KnobOutcome::Acted {
            "both values measure the same, and it is said to have acted"
        } else {
            return None;
        };
        Some(self.says(fault, &pair))
    }

    fn says(&self, fault: &str, pair: &Pair) -> String {
        let sentence = self.uses(&pair.other).sentence();
        format!("{}={}: {fault}; {sentence}", self.knob.spec().name, self.value)
    }
}

fn check(cases: &[Case]) {
    let faults = |case: &Case| [case.fault_where_it_acts(), case.fault_where_it_rests()];
    let faults: Vec<String> = cases.iter().flat_map(faults).flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn knobs_of_page_lists_act_and_rest() {
    check(&cases::lists());
}

#[test]
fn knobs_of_groups_act_and_rest() {
    check(&cases::groups());
}

#[test]
fn knobs_of_marks_act_and_rest() {
    check(&cases::marks());
}

#[test]
fn knobs_of_slabs_act_and_rest() {
    check(&cases::slabs());
}

#[test]
fn knobs_of_zones_act_and_rest() {
    check(&cases::zones());
}

#[test]
fn knobs_of_large_blocks_act_and_rest() {
    check(&cases::blocks());
}

#[test]
fn knobs_of_sizes_act_and_rest() {
    check(&cases::sizes());
    check(&cases::shared_sizes());
}

#[test]
fn knobs_of_khugepaged_act_and_rest() {
    check(&cases::khugepaged());
}

#[test]
fn knobs_of_address_spaces_act_and_rest() {
    check(&cases::spaces());
}

#[test]
fn knobs_of_numa_balancing_act_and_rest() {
    check(&cases::balancing());
}

#[test]
fn knobs_of_scanners_act_and_rest() {
    check(&cases::scanners());
}

/// Knobs that act on what only a recorded program does; the tests of a program's replay have their cases
/// (`lab::replay::program`).
const OF_PROGRAMS: [Knob; 1] = [Knob::KhugepagedMaxPtesShared];

#[test]
fn every_knob_has_one_case() {
    let cases = cases::all();
    let count = |knob: Knob| cases.iter().filter(|case| case.knob == knob).count();
    let others = KNOBS.iter().filter(|spec| !OF_PROGRAMS.contains(&spec.knob));
    let others: Vec<(&str, usize)> =
        others.map(|spec| (spec.name, count(spec.knob))).filter(|(_, count)| *count != 1).collect();
    assert!(others.is_empty(), "knobs without a case, or with several: {others:?}");
}

/// All knobs that are refused on `ground` together, with the values of their cases.
fn all_refused(ground: &Ground) -> Vec<(Knob, u64)> {
    // Swap is on one device alone; a device takes pages of its own, and a limit makes a group, which charges, refused or not.
    let made = |name: &str| ["zram.disksize", "swap.disk"].contains(&name) || name.starts_with("memory.");
    let cases = cases::all().into_iter().filter(|case| !made(case.knob.spec().name));
    let cases = cases.map(|case| (case.knob, case.value));
    let mut set: Vec<(Knob, u64)> = cases.filter(|(knob, value)| ground.takes(*knob, *value)).collect();
    loop {
        let refused = ground.refused(&set);
        if refused.len() == set.len() {
            return set;
        }
        // One that is left out may have been what another needs.
        set.retain(|(knob, _)| refused.contains(knob));
    }
}

#[test]
fn what_is_refused_could_not_have_acted() {
    use workloads::{churn, few_hot_pages, large_blocks, much_memory, objects, small_process, stream};
    let plain = |ground: Ground| ground.with(Knob::MinFreeKbytes, 8192);
    let grounds =
        [much_memory(), large_blocks(), objects(), small_process(), few_hot_pages(), stream(), churn()];
    for ground in grounds.map(plain) {
        let set = all_refused(&ground);
        assert!(set.len() > 10, "{ground:?}");
        let defaults: Vec<(Knob, u64)> = set.iter().map(|(knob, _)| (*knob, knob.spec().default)).collect();
        let pair = Pair { by_default: ground.run(&defaults), other: ground.run(&set) };
        assert!(pair.measures_the_same(), "{set:?} on {ground:?}");
        let uses =
            set.iter().map(|(knob, _)| (knob.spec().name, &pair.other.run.knob_uses[knob.spec().name]));
        let acted: Vec<_> = uses.filter(|(_, uses)| uses.outcome == KnobOutcome::Acted).collect();
        assert!(acted.is_empty(), "{acted:?} on {ground:?}");
    }
}
