//! Bounds that somebody set (`--fail-if`), beside what came out.

use lab::evidence::PERCENT;
use lab::measurements::{BoundCheck, BoundSide, Held};

use crate::style::Style;
use crate::table::wrap;
use crate::units;

/// Lines for each state; all others are counted.
const NAMED: usize = 4;

/// What was broken, what the seeds leave open, and how many are kept; a line each. Empty where nothing was asked.
pub fn text(style: Style, checks: &[BoundCheck]) -> String {
    let mut out = String::new();
    for (held, label) in [(Held::Broken, "broken:"), (Held::Unsure, "unsure:")] {
        let those: Vec<&BoundCheck> = checks.iter().filter(|check| check.held == held).collect();
        for check in those.iter().take(NAMED) {
            out += &item(style, label, &sentence(check));
        }
        if those.len() > NAMED {
            out += &item(style, label, &format!("{} more", those.len() - NAMED));
        }
    }
    let kept: Vec<&BoundCheck> = checks.iter().filter(|check| check.held == Held::Kept).collect();
    match kept.as_slice() {
        [] => {}
        [only] => out += &item(style, "kept:", &sentence(only)),
        several => {
            let kept = format!("{} of {}", several.len(), units::plural(checks.len() as u64, "bound"));
            out += &item(style, "kept:", &kept);
        }
    }
    out
}

/// One line for stderr of what was broken; `None` where nothing was.
pub fn line(checks: &[BoundCheck]) -> Option<String> {
    let broken: Vec<&BoundCheck> = checks.iter().filter(|check| check.held == Held::Broken).collect();
    let first = broken.first()?;
    let more = if broken.len() > 1 { format!("; {} more", broken.len() - 1) } else { String::new() };
    Some(format!("--fail-if {}{more}", sentence(first)))
}

/// `refill.p99_ns:max=20us by vm.x=5 on epyc-7w83: 169.3 µs ±25.4 µs, its lower end 143.9 µs, limit 20.00 µs (7.2 times over)`.
fn sentence(check: &BoundCheck) -> String {
    let said = |value: f64| units::figure(&check.unit, value);
    let place = match check.variant.as_str() {
        "" => format!("on {}", check.machine),
        variant => format!("by {variant} on {}", check.machine),
    };
    if !check.mean.is_finite() {
        return format!("{} {place}: nothing of the kind happened", check.bound);
    }
    let spread = match check.half_width {
        None => " (one seed)".to_owned(),
        Some(half) if half > 0.0 => format!(" ±{}", said(half)),
        Some(_) => String::new(),
    };
    let is_low = matches!(
        (check.side(), check.held),
        (BoundSide::Max, Held::Broken) | (BoundSide::Min, Held::Kept | Held::Unsure)
    );
    let end = match check.half_width {
        Some(half) if half > 0.0 => {
            format!(", its {} end {}", if is_low { "lower" } else { "upper" }, said(check.deciding_end))
        }
        _ => String::new(),
    };
    format!(
        "{} {place}: {}{spread}{end}, limit {}{}{}",
        check.bound,
        said(check.mean),
        said(check.limit),
        by_how_much(check),
        of_model(check)
    )
}

/// `; the model's own 80 % interval, 16.00 µs to 27.00 µs, holds the limit`; nothing where it does not.
fn of_model(check: &BoundCheck) -> String {
    let Some(model) = &check.model else { return String::new() };
    match (model.holds(check.limit), model.low.zip(model.high)) {
        (Some(true), Some((low, high))) => {
            let [low, high] = [low, high].map(|end| units::figure(&check.unit, end));
            format!("; the model's own {PERCENT} % interval, {low} to {high}, holds the limit")
        }
        _ => String::new(),
    }
}

/// ` (7.2 times over)`, ` (8 % under)`; nothing where the bound is kept.
fn by_how_much(check: &BoundCheck) -> String {
    if check.held == Held::Kept || check.limit <= 0.0 || check.mean <= 0.0 {
        return String::new();
    }
    let (over, way) = if check.mean > check.limit {
        (check.mean / check.limit, "over")
    } else {
        (check.limit / check.mean, "under")
    };
    match over {
        2.0.. => format!(" ({over:.1} times {way})"),
        _ => format!(" ({:.1} % {way})", 100.0 * (check.mean - check.limit).abs() / check.limit),
    }
}

fn item(style: Style, label: &str, text: &str) -> String {
    let lines = wrap(&format!("{label} {text}"), style.columns() - 2).join("\n  ");
    let label_set = if label == "broken:" { style.bad(label) } else { style.heading(label) };
    lines.replacen(label, &label_set, 1) + "\n"
}

#[cfg(test)]
mod tests {
    use lab::measurements::ModelInterval;

    use super::*;

    #[test]
    fn what_was_broken_is_said_with_the_bound_and_by_how_much() {
        let check = |bound: &str, held, mean, half_width, limit| BoundCheck {
            bound: bound.into(),
            unit: "ns".into(),
            machine: "m".into(),
            variant: "v=5".into(),
            held,
            mean,
            half_width,
            deciding_end: if bound.contains("max") == (held == Held::Broken) {
                mean - half_width.unwrap_or(0.0)
            } else {
                mean + half_width.unwrap_or(0.0)
            },
            limit,
            ..BoundCheck::default()
        };
        let checks = [
            check("refill.p99_ns:max=20us", Held::Broken, 169e3, Some(25e3), 20e3),
            check("drain.p99_ns:max=20us", Held::Unsure, 21e3, Some(2e3), 20e3),
            check("fault.p99_ns:max=20us", Held::Unsure, f64::NAN, None, 20e3),
            check("fault.mean_ns:min=98%", Held::Broken, 90.0, None, 98.0),
            check("fault.max_ns:max=2s", Held::Kept, 3e3, Some(0.0), 2e9),
        ];
        insta::assert_snapshot!(text(Style::plain(), &checks), @r"
        broken: refill.p99_ns:max=20us by v=5 on m: 169.0 µs ±25.00 µs, its lower end 144.0 µs, limit 20.00 µs (8.4
          times over)
        broken: fault.mean_ns:min=98% by v=5 on m: 90 ns (one seed), limit 98 ns (8.2 % under)
        unsure: drain.p99_ns:max=20us by v=5 on m: 21.00 µs ±2.000 µs, its upper end 23.00 µs, limit 20.00 µs (5.0 %
          over)
        unsure: fault.p99_ns:max=20us by v=5 on m: nothing of the kind happened
        kept: fault.max_ns:max=2s by v=5 on m: 3.000 µs, limit 2.000 s
        ");
        let with = |low, high| BoundCheck {
            model: Some(ModelInterval { kind: "hold".into(), low: Some(low), high: Some(high) }),
            ..checks[1].clone()
        };
        assert!(sentence(&with(16e3, 27e3)).ends_with("interval, 16.00 µs to 27.00 µs, holds the limit"));
        assert_eq!(sentence(&with(20.5e3, 27e3)), sentence(&checks[1]), "the limit lies outside");
        assert!(line(&checks).unwrap().ends_with("; 1 more"));
        assert_eq!(line(&checks[4..]), None);
        assert_eq!(text(Style::plain(), &[]), "");
    }
}
