//! Which levers act at all. A group of levers that changes nothing to the bit, whether it is moved alone on the first side or alone
//! back on the second, is set aside. Groups are halved until single levers are left, so that many levers of which few act take few
//! simulations. One seed is enough for that, unless those that are left do not make the whole difference with another one.

use super::taken::Taken;
use super::trials::Trials;
use crate::subject::AskError;

/// So many levers are tried one by one at once: halving them would save nothing.
const SINGLES: usize = 6;

/// What acts of `every` lever: single ones, and at the end, as one, what acts only together. What is not among them changes nothing
/// with any seed, on either side.
pub(super) fn causes(trials: &mut Trials<'_>, every: Taken) -> Result<Vec<Taken>, AskError> {
    let mut found = acting(trials, every, every, trials.first_seed())?;
    loop {
        let together = found.iter().copied().fold(Taken::NONE, Taken::and);
        let rest = every.without(together);
        trials.all_seeds(&[together, rest])?;
        let makes_none =
            |seed: u64| trials.alike(together, every, seed) && trials.alike(Taken::NONE, rest, seed);
        let Some(seed) = trials.seeds().find(|&seed| !makes_none(seed)) else { break };
        let more = acting(trials, every, rest, seed)?;
        if more.is_empty() {
            found.push(rest);
            return Ok(found);
        }
        found.extend(more);
        found.sort();
    }
    Ok(found)
}

/// Those of `some` levers that act with a seed, each alone.
fn acting(trials: &mut Trials<'_>, every: Taken, some: Taken, seed: u64) -> Result<Vec<Taken>, AskError> {
    let mut groups: Vec<Taken> =
        if some.len() <= SINGLES { some.indices().map(Taken::one).collect() } else { some.halves().to_vec() };
    let mut acting = vec![];
    while !groups.is_empty() {
        let both = groups.iter().flat_map(|&group| [group, every.without(group)]);
        trials.one_seed(&both.collect::<Vec<_>>(), seed)?;
        let acts = |group: Taken| {
            !trials.alike(Taken::NONE, group, seed) || !trials.alike(every.without(group), every, seed)
        };
        let (single, several): (Vec<Taken>, Vec<Taken>) =
            groups.into_iter().filter(|&group| acts(group)).partition(|group| group.len() == 1);
        acting.extend(single);
        groups = several.into_iter().flat_map(Taken::halves).collect();
    }
    acting.sort();
    Ok(acting)
}
