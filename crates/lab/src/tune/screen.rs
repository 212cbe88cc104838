//! Which knobs change anything at all that is looked at, where nobody said which to search.

use super::bench::Bench;
use super::judge::Judge;
use super::space::{Axis, Setting, Space};
use crate::measurements::SetAside;
use crate::subject::AskError;

/// Takes the knobs out of `space` that, each alone at its ends (at each of its words), leave every goal and every limit's figure
/// as it is, to the bit, with the first seed in the shortest form.
pub(super) fn screen(
    space: &Space,
    current: &Setting,
    bench: &mut Bench<'_>,
    seed: u64,
) -> Result<Space, AskError> {
    let tried: Vec<Vec<Setting>> =
        (0..space.axes.len()).map(|place| ends(&space.axes[place], current, place)).collect();
    let mut all: Vec<Setting> = tried.concat();
    all.push(current.clone());
    bench.make(0, &all, &[seed])?;
    let was = bench.of(0, current, seed);
    let acts = |place: &usize| tried[*place].iter().any(|setting| bench.of(0, setting, seed) != was);
    let (acting, idle): (Vec<usize>, Vec<usize>) = (0..space.axes.len()).partition(acts);
    let mut screened = Space { axes: vec![], ..space.clone() };
    screened.axes.extend(acting.iter().map(|&place| space.axes[place].clone()));
    screened.set_aside.extend(idle.iter().map(|&place| SetAside {
        knob: space.axes[place].knob.spec().name.to_owned(),
        why: "alone it changes nothing that is looked at, to the bit".to_owned(),
    }));
    Ok(screened)
}

fn ends(axis: &Axis, current: &Setting, place: usize) -> Vec<Setting> {
    let last = axis.values.len() as u8 - 1;
    let is_tried = |at: &u8| *at != axis.current && (!axis.is_numeric() || *at == 0 || *at == last);
    let with = |at: u8| {
        let mut setting = current.clone();
        setting[place] = at;
        setting
    };
    (0..=last).filter(is_tried).map(with).collect()
}

impl Judge {
    /// The same for a space whose current setting is `current`.
    pub(super) fn for_current(&self, current: Setting) -> Self {
        Self { current, ..self.clone() }
    }
}
