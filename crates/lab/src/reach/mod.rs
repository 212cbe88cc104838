//! What a knob reaches. Before a run: whether anything that the workload brings, the machine has and the policy does
//! reads it at all ([`refusals`]). After it: what it did, from what the simulation counted (`uses`).
//!
//! A knob that can act nowhere is refused: two columns that are alike would say that a setting is of no use, where it was
//! never asked. What could act is not refused.

mod after;
mod brings;
mod margin;
mod need;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mm::Knob;
use sim::{KnobTally, Measurements};

use crate::measurements::{KnobOutcome, KnobUses};

pub(crate) use after::{mark_rested, refused_after};
pub use brings::Brings;
pub use need::Where;

/// A knob that cannot act, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The knob.
    pub knob: Knob,
    /// What is missing.
    pub missing: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot act here: {}", self.knob.spec().name, self.missing)
    }
}

impl std::error::Error for Refusal {}

/// Those of `later`, which are to change in mid-run, that are read `at_start` alone, each once.
pub(crate) fn too_late(later: impl Iterator<Item = Knob>, at_start: &[Knob]) -> Vec<Refusal> {
    let found: BTreeSet<Knob> = later.filter(|knob| at_start.contains(knob)).collect();
    let refuse =
        |knob: Knob| Refusal { knob, missing: "it is read when a run begins, and not in mid-run".into() };
    found.into_iter().map(refuse).collect()
}

/// The knobs set at `place` that cannot act there, each once.
pub fn refusals(place: &Where<'_>) -> Vec<Refusal> {
    let mut refused: Vec<Refusal> = vec![];
    for &(knob, _) in place.set {
        let missing = knob.spec().needs.iter().find_map(|need| need::missing(need, place));
        if let Some(missing) = missing.filter(|_| refused.iter().all(|refusal| refusal.knob != knob)) {
            let missing = missing + &aside(knob, place);
            refused.push(Refusal { knob, missing });
        }
    }
    refused
}

/// What a knob would do all the same, though not what it is for.
fn aside(knob: Knob, place: &Where<'_>) -> String {
    let by_hand = place.set.iter().any(|(other, value)| *other == Knob::MinFreeKbytes && *value > 0);
    if knob == Knob::TransparentHugepage && !by_hand {
        return "; forced, it would show only what khugepaged's wish does to vm.min_free_kbytes".to_owned();
    }
    String::new()
}

/// Says in `uses` of each knob that was `refused` that it ran by force.
pub(crate) fn mark_forced(uses: &mut BTreeMap<String, KnobUses>, refused: &[Refusal]) {
    for Refusal { knob, missing } in refused {
        let uses = uses.entry(knob.spec().name.to_owned()).or_default();
        (uses.outcome, uses.nearest) = (KnobOutcome::RefusedButForced, missing.clone());
        uses.distance = None;
    }
}

/// What each of the knobs that were `set` did, by its name; `refused` are those that cannot act and were forced. A knob's value is
/// `None` if it changed in mid-run.
pub(crate) fn uses(
    set: impl IntoIterator<Item = (Knob, Option<u64>)>,
    refused: &[Refusal],
    measured: &Measurements,
) -> BTreeMap<String, KnobUses> {
    let one = |(knob, value): (Knob, Option<u64>)| {
        let refusal = refused.iter().find(|refusal| refusal.knob == knob);
        let mut uses = of_tally(knob, measured.knob(knob), refusal);
        if uses.outcome == KnobOutcome::Consulted && value == Some(knob.spec().default) {
            (uses.outcome, uses.nearest, uses.distance) = (KnobOutcome::AtDefault, String::new(), None);
        }
        (knob.spec().name.to_owned(), uses)
    };
    set.into_iter().map(one).collect()
}

fn of_tally(knob: Knob, tally: KnobTally, refusal: Option<&Refusal>) -> KnobUses {
    let (outcome, nearest) = match refusal {
        Some(refusal) => (KnobOutcome::RefusedButForced, Some(refusal.missing.clone())),
        None if tally.differed > 0 => (KnobOutcome::Acted, None),
        None => (KnobOutcome::Consulted, margin::sentence(knob.spec().compares, &tally)),
    };
    let distance = tally.nearest.map(|margin| margin.distance());
    KnobUses {
        outcome,
        consulted: tally.consulted,
        differed: tally.differed,
        nearest: nearest.unwrap_or_default(),
        distance: distance.filter(|_| outcome == KnobOutcome::Consulted),
    }
}
