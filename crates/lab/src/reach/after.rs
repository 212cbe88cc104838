//! What is known only after a run: a knob of the lists that reclaim takes pages from decides nothing where nothing is taken.

use mm::Knob;
use mm::knobs::Need;

use super::Refusal;
use crate::measurements::{KnobOutcome, KnobUses, Run};

/// Pages that reclaim looked at, under vmstat's names: for the machine, and for groups.
const LOOKED_AT: [&str; 4] = ["pgscan_kswapd", "pgscan_direct", "pgscan_anon", "pgscan_file"];

const NEVER_SHORT: &str = "memory never ran short, and nothing was reclaimed (a machine with less memory, more copies or a \
                           limit of a cgroup may do it)";

fn needs_reclaim(knob: Knob) -> bool {
    knob.spec().needs.iter().any(|need| matches!(need, Need::Reclaim))
}

fn reclaimed(run: &Run) -> bool {
    run.counters.iter().any(|(name, count)| *count > 0 && LOOKED_AT.contains(&name.as_str()))
}

/// Of the knobs that were `set` in `runs`, the first that could act in none of them.
pub(crate) fn refused_after(mut set: impl Iterator<Item = Knob>, runs: &[Run]) -> Option<Refusal> {
    let knob = set.find(|&knob| needs_reclaim(knob))?;
    (!runs.iter().any(reclaimed)).then(|| Refusal { knob, missing: NEVER_SHORT.to_owned() })
}

/// Says in the uses of each knob that needs reclaim that there was none in `run`: on which lists pages are is by the knob, and
/// nobody took any from there.
pub(crate) fn mark_rested(run: &mut Run) {
    if reclaimed(run) {
        return;
    }
    for (name, uses) in &mut run.knob_uses {
        if Knob::from_name(name).is_ok_and(needs_reclaim) && uses.outcome != KnobOutcome::RefusedButForced {
            *uses = KnobUses { nearest: NEVER_SHORT.to_owned(), ..KnobUses::default() };
        }
    }
}
