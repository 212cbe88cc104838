//! Which published figures follow from others. A mean, a count and a total, or two figures and their quotient, are two
//! facts and not three: the one that comes last is marked as derived.
//!
//! In logarithms, products and quotients are sums. A figure is then a vector over a few unknowns (the mean duration of a
//! refill in one variant, how often it comes …), a comparison the difference of two of them; and a row that lies in the
//! span of those before it says nothing new. Sums that are no products (parts of a whole) are not found out: a file names
//! those by `role = "derived"`.

use std::collections::BTreeMap;

use super::metric::Metric;
use super::spec::{Case, Experiment, Published};
use crate::measurements::{Confidence, Role};

/// An unknown: which case, and what of it.
type Unknown = (usize, usize, String);
/// A product of powers of unknowns.
type Product = BTreeMap<Unknown, f64>;

/// Coefficients below this are what rounding leaves of 0.
const NOTHING: f64 = 1e-9;
const DERIVED: &str = "the same as another row, or a product or quotient of others";

/// Marks predicted rows that follow from others as derived, and those of variants that are the kernel's own numbers as
/// exact. Fitted rows come first: what follows from one of them is derived, not predicted.
pub(super) fn mark(experiment: &mut Experiment) {
    for variant in experiment.variants.iter_mut().filter(|variant| variant.confidence == Confidence::Exact) {
        let figures = variant.figures.iter_mut().filter(|figure| figure.published.is_known());
        for figure in figures.filter(|figure| figure.role == Role::Predicted) {
            figure.role = Role::Exact;
        }
    }
    let mut known = Span::default();
    for role in [Role::Fitted, Role::Exact, Role::Predicted] {
        for (index, variant) in experiment.variants.iter_mut().enumerate() {
            for figure in variant.figures.iter_mut().filter(|figure| figure.role == role) {
                let case = Case { variant: index, phase: figure.phase };
                let is_value = matches!(figure.published, Published::Value(value) if value.is_finite());
                if is_value && !known.add(product(case, &figure.metric)) && role == Role::Predicted {
                    (figure.role, figure.because) = (Role::Derived, DERIVED.into());
                }
            }
        }
        for comparison in experiment.comparisons.iter_mut().filter(|comparison| comparison.role == role) {
            let change = quotient(
                product(comparison.case, &comparison.metric),
                product(comparison.against, &comparison.metric),
            );
            if comparison.published.is_finite() && !known.add(change) && role == Role::Predicted {
                (comparison.role, comparison.because) = (Role::Derived, DERIVED.into());
            }
        }
    }
}

fn product(case: Case, metric: &Metric) -> Product {
    let path = metric.path();
    let (subject, figure) = path.split_once('.').unwrap_or(("", path));
    let name = |what: &str| format!("{subject}.{what}");
    let (mean, count, pages) = (name("mean_ns"), name("count"), name("pages_mean"));
    let operations = "operations".to_owned();
    let factors = match (subject, figure) {
        // The number of tasks and of parts that are alike, and the length of the run, are the same for all of a case.
        ("", "operations_per_second" | "operations_per_task_second") => vec![(operations, 1.0)],
        ("sum" | "mean", _) => vec![(format!("mean.{figure}"), 1.0)],
        ("counters" | "counters_per_second", _) => vec![(format!("counters.{figure}"), 1.0)],
        ("counters_per_operation", _) => vec![(format!("counters.{figure}"), 1.0), (operations, -1.0)],
        ("ratio", _) => {
            let (of, by) = figure.split_once('/').unwrap_or((figure, ""));
            vec![(format!("counters.{of}"), 1.0), (format!("counters.{by}"), -1.0)]
        }
        (_, "count_per_second") => vec![(count, 1.0)],
        (_, "count_per_operation") => vec![(count, 1.0), (operations, -1.0)],
        (_, "total_ns_per_second") => vec![(mean, 1.0), (count, 1.0)],
        (_, "total_ns_per_operation") => vec![(mean, 1.0), (count, 1.0), (operations, -1.0)],
        (_, "pages_per_second") if !subject.is_empty() => vec![(pages, 1.0), (count, 1.0)],
        (_, "pages_per_operation") => vec![(pages, 1.0), (count, 1.0), (operations, -1.0)],
        _ => vec![(path.to_owned(), 1.0)],
    };
    factors.into_iter().map(|(what, power)| ((case.variant, case.phase, what), power)).collect()
}

fn quotient(mut of: Product, by: Product) -> Product {
    for (unknown, power) in by {
        *of.entry(unknown).or_default() -= power;
    }
    of
}

/// All that follows from some products.
#[derive(Default)]
struct Span {
    /// Each has an unknown that none of the others has, to the power of 1.
    basis: Vec<(Unknown, Product)>,
}

impl Span {
    /// Adds what is known of `product`; whether that was anything new.
    fn add(&mut self, mut product: Product) -> bool {
        for (unknown, of) in &self.basis {
            if let Some(power) = product.get(unknown).copied() {
                subtract(&mut product, of, power);
            }
        }
        product.retain(|_, power| power.abs() > NOTHING);
        let Some((unknown, lead)) = product.iter().next().map(|(unknown, power)| (unknown.clone(), *power))
        else {
            return false;
        };
        for power in product.values_mut() {
            *power /= lead;
        }
        for (_, of) in &mut self.basis {
            if let Some(power) = of.get(&unknown).copied() {
                subtract(of, &product, power);
            }
        }
        self.basis.push((unknown, product));
        true
    }
}

/// Divides `from` by `of` to the power of `power`.
fn subtract(from: &mut Product, of: &Product, power: f64) {
    for (unknown, by) in of {
        *from.entry(unknown.clone()).or_default() -= power * by;
    }
    from.retain(|_, power| power.abs() > NOTHING);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds(span: &mut Span, variant: usize, path: &str) -> bool {
        span.add(product(Case { variant, phase: 0 }, &Metric::parse(path).expect(path)))
    }

    #[test]
    fn mean_count_and_total_are_two_facts() {
        let mut span = Span::default();
        assert!(adds(&mut span, 0, "refill.total_ns_per_second"));
        assert!(adds(&mut span, 0, "refill.mean_ns"));
        assert!(!adds(&mut span, 0, "refill.count_per_second"));
        assert!(adds(&mut span, 0, "refill.p99_ns"));
        assert!(adds(&mut span, 1, "refill.mean_ns"), "of another variant");
        assert!(adds(&mut span, 0, "operations_per_second"));
        assert!(!adds(&mut span, 0, "operations_per_task_second"));
        assert!(!adds(&mut span, 0, "refill.count_per_operation"));
        assert!(adds(&mut span, 0, "mean.jvms"));
        assert!(!adds(&mut span, 0, "sum.jvms"));
        assert!(adds(&mut span, 0, "ratio.a/b") && adds(&mut span, 0, "counters.a"));
        assert!(!adds(&mut span, 0, "counters_per_second.b"));
    }

    #[test]
    fn a_change_follows_from_two_others() {
        let metric = Metric::parse("refill.mean_ns").expect("a metric");
        let of = |variant| product(Case { variant, phase: 0 }, &metric);
        let mut span = Span::default();
        assert!(span.add(quotient(of(0), of(1))));
        assert!(span.add(quotient(of(1), of(2))));
        assert!(!span.add(quotient(of(2), of(0))), "round in a circle");
        assert!(span.add(of(1)));
        assert!(!span.add(of(0)) && !span.add(of(2)));
    }
}
