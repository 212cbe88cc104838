//! The score of an experiment: how far off the independent predicted rows are, and how many directions are right.

use crate::measurements::{Direction, Role, Row, Score};

/// Of `rows`, all of the experiment `name`. An independent row with no simulated figure is infinitely far off.
pub(super) fn score(name: &str, rows: &[Row]) -> Score {
    let known = || rows.iter().filter(|row| row.published.is_finite() && row.unit != "buckets");
    let of = |role: Role| known().filter(|row| row.role == role).count() as u64;
    let mut errors: Vec<f64> = known().filter(|row| row.role == Role::Predicted).map(error).collect();
    errors.sort_by(f64::total_cmp);
    let histograms = rows.iter().filter(|row| row.role == Role::Predicted && row.unit == "buckets");
    let distances: Vec<f64> = histograms.map(error).collect();
    let directions = || rows.iter().filter_map(|row| row.direction);
    let qualified = || directions().filter(|direction| direction.qualifies());
    let independent = errors.len() as u64;
    let [derived, noise, zero] = [Role::Derived, Role::Noise, Role::Zero].map(of);
    Score {
        experiment: name.to_owned(),
        predicted_rows: independent + derived + noise + zero,
        independent_rows: independent,
        fitted_rows: of(Role::Fitted),
        derived_rows: derived,
        noise_rows: noise,
        zero_rows: zero,
        exact_rows: of(Role::Exact),
        direction_rows: qualified().count() as u64,
        direction_right: qualified().filter(|direction| *direction == Direction::Right).count() as u64,
        direction_unqualified: (directions().count() - qualified().count()) as u64,
        median_abs_error: median(&errors),
        worst_abs_error: errors.last().copied().unwrap_or(f64::NAN),
        histograms: distances.len() as u64,
        worst_emd_buckets: distances.into_iter().fold(f64::NAN, f64::max),
    }
}

/// A row's error without its sign, 100 points as 1.
fn error(row: &Row) -> f64 {
    let error = if row.error.is_finite() { row.error.abs() } else { f64::INFINITY };
    if row.unit == "percent" { error / 100.0 } else { error }
}

/// Of values in ascending order.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(role: Role, error: f64) -> Row {
        Row { unit: "ns".into(), published: 1.0, simulated: 1.0 + error, error, role, ..Row::default() }
    }

    #[test]
    fn only_independent_rows_are_in_median_and_worst() {
        let rows = [
            row(Role::Predicted, -0.5),
            row(Role::Predicted, 0.25),
            row(Role::Predicted, 0.125),
            row(Role::Derived, 0.0),
            row(Role::Derived, 9.0),
            row(Role::Noise, 0.0),
            row(Role::Zero, 0.0),
            row(Role::Zero, 0.0),
            row(Role::Fitted, 7.0),
            row(Role::Exact, 0.0),
            Row { published: f64::NAN, ..row(Role::Predicted, f64::NAN) },
        ];
        let score = score("e", &rows);
        assert_eq!((score.independent_rows, score.predicted_rows), (3, 8));
        assert_eq!((score.fitted_rows, score.derived_rows, score.exact_rows), (1, 2, 1));
        assert_eq!((score.noise_rows, score.zero_rows), (1, 2));
        assert_eq!((score.median_abs_error, score.worst_abs_error), (0.25, 0.5));
    }

    #[test]
    fn a_score_of_directions_says_how_many_qualified() {
        let of = |direction| Row { direction: Some(direction), ..row(Role::Predicted, 0.0) };
        let rows = [
            of(Direction::Right),
            of(Direction::Opposite),
            of(Direction::Unclear),
            of(Direction::WithinNoise),
            of(Direction::OneSeed),
            row(Role::Predicted, 0.0),
        ];
        let score = score("e", &rows);
        assert_eq!((score.direction_right, score.direction_rows, score.direction_unqualified), (1, 3, 2));
    }

    #[test]
    fn a_row_that_was_not_simulated_is_infinitely_far_off() {
        assert!(score("e", &[row(Role::Predicted, f64::NAN)]).worst_abs_error.is_infinite());
        assert!(score("e", &[]).median_abs_error.is_nan());
    }
}
