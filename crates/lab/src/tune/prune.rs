//! What each knob of a setting contributes, and which of them are worth writing.

use super::bench::Bench;
use super::judge::Judge;
use super::space::{Setting, Space};
use crate::measurements::{Contribution, Effect, Held};
use crate::subject::AskError;

/// A setting without the knobs that do nothing in it.
#[derive(Clone, Debug)]
pub(super) struct Pruned {
    pub(super) setting: Setting,
    /// All knobs of the setting that came in; those that were dropped stand behind those that were kept.
    pub(super) contributions: Vec<Contribution>,
}

/// Puts each knob of what was `found` back by itself and takes out those without which it is no worse beyond the noise by anything that matters, one after the other, the
/// one that does least first: of two that do the same the second may be needed once the first is gone. All that are taken out make no
/// difference that matters, either: of many that do little each, some stay.
pub(super) fn prune(
    space: &Space,
    judge: &Judge,
    bench: &mut Bench<'_>,
    whole: usize,
    found: &Setting,
    seeds: &[u64],
) -> Result<Pruned, AskError> {
    let mut dropped = vec![];
    let mut setting = found.clone();
    // What matters is a part of what the current setting has.
    bench.make(whole, std::slice::from_ref(&judge.current), seeds)?;
    loop {
        let places: Vec<usize> =
            (0..setting.len()).filter(|&at| setting[at] != space.axes[at].current).collect();
        let without: Vec<Setting> = places.iter().map(|&at| put_back(space, &setting, at)).collect();
        bench.make(whole, &without, seeds)?;
        let mut all: Vec<(usize, Contribution)> = vec![];
        for (&place, other) in places.iter().zip(&without) {
            let mut of = contribution(space, judge, bench, whole, [&setting, other], place, seeds);
            of.kept |= loses(judge, bench, whole, [found, other], seeds);
            all.push((place, of));
        }
        let idle = all.iter().filter(|(_, of)| !of.kept);
        let least = idle.min_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)));
        // What is left must still be a setting that does something.
        let Some((place, idle)) = least.cloned().filter(|_| places.len() > 1) else {
            let mut contributions: Vec<Contribution> = all.into_iter().map(|(_, of)| of).collect();
            contributions.sort_by(|one, other| size(other).total_cmp(&size(one)));
            contributions.extend(dropped);
            return Ok(Pruned { setting, contributions });
        };
        dropped.push(idle);
        setting = put_back(space, &setting, place);
    }
}

/// By how much it changes the first goal.
fn size(of: &Contribution) -> f64 {
    of.effects.first().map_or(0.0, |effect| effect.mean.abs())
}

fn put_back(space: &Space, setting: &Setting, place: usize) -> Setting {
    let mut setting = setting.clone();
    setting[place] = space.axes[place].current;
    setting
}

/// Whether `other` is worse than `setting` in a goal, beyond the noise and by something that matters.
fn loses(
    judge: &Judge,
    bench: &Bench<'_>,
    whole: usize,
    [setting, other]: [&Setting; 2],
    seeds: &[u64],
) -> bool {
    judge.aims.aims.iter().enumerate().any(|(at, aim)| {
        Judge::effect(bench, whole, [setting, other], at, seeds).is_none_or(|effect| {
            aim.is_better(&effect) && judge.is_noticeable(bench, whole, (at, &effect), seeds)
        })
    })
}

fn contribution(
    space: &Space,
    judge: &Judge,
    bench: &Bench<'_>,
    whole: usize,
    [setting, without]: [&Setting; 2],
    place: usize,
    seeds: &[u64],
) -> Contribution {
    let axis = &space.axes[place];
    let written = |at: u8| axis.knob.written(axis.values[usize::from(at)]).to_string();
    let effect = |aim: usize| Judge::effect(bench, whole, [setting, without], aim, seeds);
    let effects: Option<Vec<Effect>> = (0..judge.aims.aims.len()).map(effect).collect();
    let breaks = judge
        .held(bench, whole, without, seeds)
        .is_none_or(|held| held.iter().any(|held| held.verdict != Held::Kept));
    Contribution {
        knob: axis.knob.spec().name.to_owned(),
        from: written(axis.current),
        to: written(setting[place]),
        kept: breaks || loses(judge, bench, whole, [setting, without], seeds),
        effects: effects.unwrap_or_default(),
    }
}
