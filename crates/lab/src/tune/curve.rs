//! One numeric knob: every value, and where more of it stops paying.

use super::bench::Bench;
use super::judge::Judge;
use super::space::{Setting, Space};
use crate::measurements::{Curve, CurvePoint, Effect, Held};
use crate::subject::AskError;

/// What the knee is found by.
const METHOD: &str = "Kneedle (Satopaa and others 2011) on the means over equal steps of the list: the point farthest from the \
                      straight line between the ends, where that is beyond the noise";

/// Measures every value of the space's one knob.
pub(super) fn measure(
    space: &Space,
    judge: &Judge,
    bench: &mut Bench<'_>,
    whole: usize,
    seeds: &[u64],
) -> Result<Curve, AskError> {
    let axis = &space.axes[0];
    let settings: Vec<Setting> = (0..axis.values.len()).map(|at| vec![at as u8]).collect();
    bench.make(whole, &settings, seeds)?;
    let point = |setting: &Setting| {
        let value = axis.knob.written(axis.values[usize::from(setting[0])]).to_string();
        let goal = Judge::mean(bench, whole, setting, 0, seeds);
        let change = Judge::effect(bench, whole, [setting, &judge.current], 0, seeds);
        let held = judge.held(bench, whole, setting, seeds).unwrap_or_default();
        let nothing = Effect { mean: f64::NAN, ..Effect::default() };
        let verdict = match goal {
            None => Held::Broken,
            Some(_) => held.iter().map(|held| held.verdict).max_by_key(|of| *of as u8).unwrap_or_default(),
        };
        CurvePoint { value, goal: goal.unwrap_or(nothing), change: change.unwrap_or(nothing), verdict }
    };
    let points: Vec<CurvePoint> = settings.iter().map(point).collect();
    let effect = |of: usize, base: usize| {
        Judge::effect(bench, whole, [&settings[of], &settings[base]], 0, seeds).unwrap_or_default()
    };
    let losses: Vec<f64> = points.iter().map(|point| judge.aims.aims[0].loss(point.goal.mean)).collect();
    let knee = knee(&losses).filter(|&at| {
        let last = points.len() - 1;
        // Both ways from the knee must differ: what is flat and what is straight have none.
        losses.iter().all(|loss| loss.is_finite()) && effect(at, 0).is_told() && effect(last, 0).is_told()
    });
    let best = (0..losses.len()).filter(|&at| losses[at].is_finite());
    let best = best.min_by(|&one, &other| losses[one].total_cmp(&losses[other]));
    let enough = best.and_then(|best| {
        let is_as_good =
            |&at: &usize| losses[at].is_finite() && !judge.aims.aims[0].is_worse(&effect(at, best));
        (0..points.len()).find(is_as_good)
    });
    let value = |at: usize| points[at].value.clone();
    Ok(Curve {
        knob: axis.knob.spec().name.to_owned(),
        knee: knee.map(value),
        enough: enough.map(value),
        method: METHOD.to_owned(),
        points,
    })
}

/// The place of the point that is farthest from the straight line between the first and the last; `None` of fewer than three, or
/// where all lie on it. Steps of the list count as equal, for values come by factors as often as by steps.
fn knee(losses: &[f64]) -> Option<usize> {
    let last = losses.len().checked_sub(1).filter(|last| *last > 1)?;
    let span =
        losses.iter().copied().fold(f64::MIN, f64::max) - losses.iter().copied().fold(f64::MAX, f64::min);
    let line = |at: usize| losses[0] + (losses[last] - losses[0]) * at as f64 / last as f64;
    let away = |at: &usize| (losses[*at] - line(*at)).abs();
    let at = (1..last).max_by(|one, other| away(one).total_cmp(&away(other)))?;
    // A tenth of the whole way, as Kneedle's sensitivity asks for a difference that is no ripple.
    (span > 0.0 && away(&at) > span / 10.0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_a_curve_bends() {
        assert_eq!(knee(&[100.0, 60.0, 30.0, 12.0, 10.0, 9.0, 8.5, 8.0]), Some(3));
        assert_eq!(knee(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(knee(&[5.0, 5.0, 5.0]), None);
        assert_eq!(knee(&[5.0, 1.0]), None);
        // One that rises late bends, too.
        assert_eq!(knee(&[1.0, 1.0, 1.0, 1.0, 9.0]), Some(3));
    }
}
