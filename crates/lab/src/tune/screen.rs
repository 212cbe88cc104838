//! Which knobs change anything at all that is looked at, where nobody said which to search.

use super::bench::{Bench, Tried};
use super::judge::{Judge, NOTICEABLE};
use super::space::{Axis, Setting, Space};
use crate::measurements::SetAside;
use crate::subject::AskError;

/// Takes the knobs out of `space` that, each alone at its ends (at each of its words), leave every goal and every limit's figure
/// as it is but for less than anybody would care to have, with the first seed in the shortest form.
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
    let acts = |place: &usize| tried[*place].iter().any(|setting| differ(bench.of(0, setting, seed), was));
    let (acting, idle): (Vec<usize>, Vec<usize>) = (0..space.axes.len()).partition(acts);
    let mut screened = Space { axes: vec![], ..space.clone() };
    screened.axes.extend(acting.iter().map(|&place| space.axes[place].clone()));
    screened.set_aside.extend(idle.iter().map(|&place| SetAside {
        knob: space.axes[place].knob.spec().name.to_owned(),
        why: "alone it changes nothing that is looked at by 0.1 % or more".to_owned(),
    }));
    Ok(screened)
}

/// Whether two simulations differ in a figure so much that somebody would care.
fn differ(one: &Tried, other: &Tried) -> bool {
    let (Ok(one), Ok(other)) = (one, other) else { return one != other };
    one.iter().zip(other).any(|pair| match pair {
        (Some(one), Some(other)) => (one - other).abs() > NOTICEABLE * other.abs(),
        (one, other) => one != other,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_would_care_for_is_no_difference() {
        let was: Tried = Ok(vec![Some(1000.0), None, Some(0.0)]);
        let with = |first: f64, second: Option<f64>, third: f64| -> Tried {
            Ok(vec![Some(first), second, Some(third)])
        };
        assert!(!differ(&with(1000.9, None, 0.0), &was));
        assert!(differ(&with(1001.1, None, 0.0), &was));
        assert!(differ(&with(1000.0, Some(1.0), 0.0), &was));
        assert!(differ(&with(1000.0, None, 0.001), &was), "something where nothing was");
        assert!(differ(&Err("killed".to_owned()), &was));
        assert!(!differ(&Err("killed".to_owned()), &Err("killed".to_owned())));
    }
}
