use super::*;

const PERCENT: f64 = 0.0;

fn went(change: f64, values: &[f64]) -> Option<Direction> {
    let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    direction(Way::Beyond(1.0), change, PERCENT, &values)
}

#[test]
fn noise_of_the_simulation_is_no_direction() {
    // What was called right until now: 13.24 % published, 0.22 simulated, with seeds between -4 and +5.
    assert_eq!(went(13.24, &[0.22, -4.1, 4.54]), Some(Direction::Unclear));
    assert_eq!(went(13.24, &[0.2, 0.22, 0.24]), Some(Direction::Right));
    assert_eq!(went(13.24, &[-0.2, -0.22, -0.24]), Some(Direction::Opposite));
    assert_eq!(went(-13.24, &[-0.2, -0.22, -0.24]), Some(Direction::Right));
    // Three seeds of one sign are not enough: t is 4.30.
    assert_eq!(went(13.24, &[1.0, 2.0, 9.0]), Some(Direction::Unclear));
}

#[test]
fn seeds_that_agree_to_the_bit_have_an_interval_of_no_width() {
    assert_eq!(went(5.0, &[3.0, 3.0, 3.0]), Some(Direction::Right));
    assert_eq!(went(5.0, &[0.0, 0.0, 0.0]), Some(Direction::Unclear));
}

#[test]
fn what_does_not_qualify() {
    assert_eq!(went(13.24, &[13.0]), Some(Direction::OneSeed));
    assert_eq!(went(0.5, &[0.5, 0.5]), Some(Direction::WithinNoise));
    assert_eq!(went(f64::NAN, &[0.5, 0.5]), None);
    let values = [Some(1.0), Some(1.1)];
    assert_eq!(direction(Way::Noise, 50.0, PERCENT, &values), Some(Direction::WithinNoise));
    assert_eq!(direction(Way::NotAsked, 50.0, PERCENT, &values), None);
    // A ratio: no change is 1.
    assert_eq!(direction(Way::Beyond(0.01), 0.5, 1.0, &values), Some(Direction::Unclear));
    assert_eq!(direction(Way::Beyond(0.01), 0.5, 1.0, &[Some(1.2), Some(1.21)]), Some(Direction::Right));
    assert_eq!(direction(Way::Beyond(1.0), 5.0, PERCENT, &[Some(5.0), None]), Some(Direction::Unclear));
}

fn blank(unit: &str) -> Row {
    Row { unit: unit.into(), ..Row::default() }
}

#[test]
fn nothing_on_both_sides_is_no_prediction() {
    let of = |published: f64, simulated: f64| {
        nothing(filled(blank("events"), published, [Some(simulated)].into_iter()), 0.0)
    };
    assert_eq!((of(0.0, 0.0).role, of(0.0, 0.0).error), (Role::Zero, 0.0));
    assert_eq!(of(2.0, 0.0).role, Role::Predicted);
    let wrong = of(0.0, 3.0);
    assert!(wrong.role == Role::Predicted && wrong.error.is_infinite(), "it happened, and should not have");
    let change = |value: f64| nothing(filled(blank("ratio"), 1.0, [Some(value)].into_iter()), 1.0);
    assert_eq!((change(1.0).role, change(1.1).role), (Role::Zero, Role::Predicted));
}

#[test]
fn within_a_published_range_there_is_no_error() {
    let error = |simulated: f64| within(blank("ns"), [100.0, 300.0], [Some(simulated)].into_iter()).error;
    assert!([100.0, 200.0, 300.0].map(error).iter().all(|error| error.abs() < 1e-12));
    assert!((error(50.0) + 0.5).abs() < 1e-12 && (error(450.0) - 0.5).abs() < 1e-12);
    assert!(within(blank("ns"), [1.0, 2.0], std::iter::empty()).error.is_nan(), "nothing was simulated");
    let row = within(blank("percent"), [10.0, 20.0], [Some(25.0)].into_iter());
    assert_eq!((row.error, row.published, row.published_high), (5.0, 10.0, Some(20.0)));
}
