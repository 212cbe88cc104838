//! What a recording sampled to keep its budget.

use std::fmt::Write as _;

use trace::Sampled;

use crate::units::{duration, plural};

/// What recording cost by its own measurement, what was sampled for it, and what that does to counts.
pub fn account(of: &Sampled) -> String {
    let own_ns = of.cpu_ns.saturating_sub(of.spent_ns).max(1);
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
    let budget = f64::from(of.budget_ppm) / 1e4;
    let mut text = format!(
        "budget {budget}%: recording took about {} of the tasks' time, {:.1}% of the rest",
        duration(of.spent_ns as f64),
        percent(of.spent_ns, own_ns),
    );
    let Some(last) = of.steps.last() else { return text + "; nothing was sampled" };
    let _ = write!(
        text,
        "; page events were recorded of 1 unit of 1024 frames in {} at the end, and {} counted only: totals stay right, what becomes of a \
         page is known for fewer",
        last.page_events_one_in,
        plural(of.page_events_counted, "page event"),
    );
    if of.steps.iter().any(|step| step.stops_accesses) {
        text += "; accessed bits were looked at no more";
    }
    if own_ns as f64 * budget / 100.0 < of.spent_ns as f64 {
        text += "; what is left is needed by a replay";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::SamplingStep;

    #[test]
    fn a_budget_says_what_it_took() {
        let within =
            Sampled { budget_ppm: 20_000, spent_ns: 1_000_000, cpu_ns: 101_000_000, ..Sampled::default() };
        assert_eq!(
            account(&within),
            "budget 2%: recording took about 1.000 ms of the tasks' time, 1.0% of the rest; nothing was sampled"
        );
        let step = SamplingStep { at_ns: 5, page_events_one_in: 64, stops_accesses: true };
        let passed = Sampled { spent_ns: 9_000_000, page_events_counted: 7, steps: vec![step], ..within };
        let text = account(&passed);
        for part in
            ["1 unit of 1024 frames in 64", "7 page events counted only", "no more", "needed by a replay"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
