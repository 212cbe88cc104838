//! Logarithm and exponential by additions, multiplications and roots alone: libraries differ in the last bit, and a seed has one result.

/// `-ln(part)` for 0 < `part` <= 1.
pub(super) fn minus_ln(part: f64) -> f64 {
    // Roots halve the logarithm; near 1 the series is quick.
    let (mut root, mut doubled) = (part.max(1e-12), 1.0);
    while root < 0.5 {
        root = root.sqrt();
        doubled *= 2.0;
    }
    let ratio = (1.0 - root) / (1.0 + root);
    let (square, mut power, mut sum) = (ratio * ratio, ratio, 0.0);
    for term in 0..16 {
        sum += power / f64::from(2 * term + 1);
        power *= square;
    }
    2.0 * sum * doubled
}

/// `e` to the power of `x` >= 0; far beyond what is used, infinity.
pub(super) fn exp(x: f64) -> f64 {
    let (mut small, mut squares) = (x, 0);
    while small > 1.0 {
        small /= 2.0;
        squares += 1;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for number in 1..20 {
        term *= small / f64::from(number);
        sum += term;
    }
    (0..squares).fold(sum, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are() {
        for (part, wanted) in
            [(1.0, 0.0), (0.5, std::f64::consts::LN_2), (1e-3, 6.907_755), (1e-9, 20.723_266)]
        {
            assert!((minus_ln(part) - wanted).abs() < 1e-6, "{part}: {}", minus_ln(part));
        }
        assert!((exp(1.0) - std::f64::consts::E).abs() < 1e-12 && (exp(3.0) - 20.085_537).abs() < 1e-6);
    }
}
