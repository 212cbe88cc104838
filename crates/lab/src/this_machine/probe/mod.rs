//! A machine profile of what a probe measured: its figures, and for those that it could not measure the figures of the
//! `kvm-genoa-2c` profile, each of which says so.

mod forks;
mod settle;
mod shape;
mod walks;

use std::collections::BTreeMap;

use host::probe::{Grade, Measured, Probe};
use sim::profile::{FigureSpec, FigureSpread, ORDERED};
use sim::{Figure, FigureKind, Profile, ProfileError};

pub use settle::recorded_on;
pub use shape::{Described, describe};

use crate::scene::SceneError;

/// The profile that gives what was not measured.
const BASE: &str = "kvm-genoa-2c";
/// Every inherited figure's source has this in it.
pub const NOT_MEASURED: &str = "not measured here:";
/// Longest source of a profile, in bytes.
const SOURCE_BYTES_MAX: usize = 1000;

/// A profile, and what to keep in mind about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Probed {
    /// The profile: all of [`sim::profile::FIGURES`], measured or inherited.
    pub profile: Profile,
    /// Where it departs from the machine, and what disturbed the measurements; a line each.
    pub notes: Vec<String>,
}

/// The profile of what `probe` measured, called `name`.
///
/// # Errors
/// The machine cannot be described: more CPUs than a profile can have, say.
pub fn profile(probe: &Probe, name: &str) -> Result<Probed, ProfileError> {
    let base = Profile::load(BASE)?;
    let Described { mut shape, mut notes } = describe(&probe.hardware, &probe.cpus);
    for &(node, extra_ns) in &probe.extra_ns {
        if let Some(node) = shape.nodes.get_mut(node) {
            node.extra_ns = rounded(extra_ns);
        }
    }
    let mut drafts = drafts(probe, &base);
    put_in_order(&mut drafts);
    let figures = drafts.into_iter().map(|(key, draft)| (key, draft.figure));
    let gib = shape.nodes.iter().map(|node| node.memory_mib).sum::<u64>().div_ceil(1024);
    let model = if probe.hardware.model.is_empty() { "unnamed CPU" } else { &probe.hardware.model };
    let title = format!("{model}, {} CPUs, {gib} GiB; probed", shape.cpu_count());
    let mut profile = base.with(name, &title, shape, figures)?;
    notes.extend(probe.notes.iter().cloned());
    let put = |profile: &Profile, measured: &[Measured]| {
        let figures = measured.iter().map(|measured| (measured.key, seen(measured)));
        profile.with(name, &title, profile.shape().clone(), figures)
    };
    let mut unsettled =
        |what: &str, why: SceneError| notes.push(format!("{what} are not settled by a simulation: {why}"));
    if let Some(loops) = &probe.loops {
        match settle::settled(&profile, loops) {
            Ok(settled) => profile = put(&profile, &settled)?,
            Err(why) => unsettled("faults", why),
        }
    }
    if let Some(slope) = &probe.fork {
        match forks::settled(&profile, slope) {
            Ok(settled) => profile = put(&profile, &[settled])?,
            Err(why) => unsettled("forks", why),
        }
    }
    if let Some(seen_walks) = &probe.walks {
        profile = put(&profile, &[walks::settled(&profile, seen_walks)])?;
    }
    Ok(Probed { profile, notes })
}

/// A figure on its way into a profile.
struct Draft {
    figure: Figure,
    /// Whether it was measured, in contrast to inherited.
    own: bool,
}

/// All of [`FIGURES`].
fn drafts(probe: &Probe, base: &Profile) -> BTreeMap<&'static str, Draft> {
    let draft = |(spec, inherited): (&FigureSpec, &Figure)| {
        let possible =
            |measured: &&Measured| (spec.min..=spec.max).contains(&rounded(measured.spread.median));
        let measured = probe.figures.iter().find(|measured| measured.key == spec.key);
        match measured {
            Some(measured) if possible(&measured) => Draft { figure: seen(measured), own: true },
            _ => Draft { figure: inherit(inherited, &why_absent(probe, spec.key)), own: false },
        }
    };
    let mut drafts: BTreeMap<_, _> =
        base.figures().map(|(spec, figure)| (spec.key, draft((spec, figure)))).collect();
    if !probe.hardware.is_guest {
        let figure = Figure::new(1.0, FigureKind::Measured, "the CPU names no hypervisor");
        drafts.insert("tlb.nested_ratio", Draft { figure, own: true });
    }
    drafts
}

fn why_absent(probe: &Probe, key: &str) -> String {
    if let Some(absurd) = probe.figures.iter().find(|measured| measured.key == key) {
        return format!("{} came out, which no machine has", absurd.spread.median);
    }
    let absent = probe.absent.iter().find(|absent| absent.key == key);
    absent.map_or_else(|| "this probe does not do that".into(), |absent| absent.why.clone())
}

fn seen(measured: &Measured) -> Figure {
    let kind = match measured.grade {
        Grade::Seen => FigureKind::Measured,
        Grade::Extrapolated => FigureKind::Estimated,
    };
    let host::probe::SampleSpread { min, p25, median, p75, max, samples } = measured.spread;
    let spread =
        FigureSpread { min: rounded(min), p25: rounded(p25), p75: rounded(p75), max: rounded(max), samples };
    Figure {
        spread: (samples > 1).then_some(spread),
        ..Figure::new(rounded(median), kind, short(measured.how.clone()))
    }
}

/// A figure of the base, which is not this machine's.
fn inherit(figure: &Figure, why: &str) -> Figure {
    let source = format!("{NOT_MEASURED} {why}; as in the {BASE} profile: {}", figure.source);
    // What was measured elsewhere, or fitted to it, is an estimate here.
    let kind =
        if figure.kind == FigureKind::Published { FigureKind::Published } else { FigureKind::Estimated };
    Figure::new(figure.value, kind, short(source))
}

/// A figure that others must not pass.
#[derive(Clone, Copy)]
struct Bound<'a> {
    key: &'a str,
    value: f64,
}

/// Inherited figures give way where they would stand on the wrong side of a measured one; of two measured ones, the
/// later.
fn put_in_order(drafts: &mut BTreeMap<&'static str, Draft>) {
    for chain in ORDERED {
        // Downwards first: what is inherited must not push up what was measured.
        let mut bound: Option<Bound<'_>> = None;
        for &key in chain.iter().rev() {
            let Some(draft) = drafts.get_mut(key) else { continue };
            match bound {
                Some(bound) if !draft.own && draft.figure.value > bound.value => {
                    set_to(&mut draft.figure, bound);
                }
                Some(Bound { value, .. }) if draft.own && draft.figure.value > value => {}
                _ if draft.own => bound = Some(Bound { key, value: draft.figure.value }),
                _ => {}
            }
        }
        let mut bound = Bound { key: "", value: f64::MIN };
        for &key in *chain {
            let Some(draft) = drafts.get_mut(key) else { continue };
            if draft.figure.value < bound.value {
                set_to(&mut draft.figure, bound);
            }
            bound = Bound { key, value: draft.figure.value };
        }
    }
}

/// Gives a figure another one's value, and says so.
fn set_to(figure: &mut Figure, Bound { key, value }: Bound<'_>) {
    let source =
        format!("set to {key}, which is {value}, for {} was out of order; {}", figure.value, figure.source);
    *figure = Figure { spread: figure.spread, ..Figure::new(value, FigureKind::Estimated, short(source)) };
}

/// To four digits, or to the whole number where it has more.
fn rounded(value: f64) -> f64 {
    let digits = value.abs().max(1e-9).log10().floor() as i32 + 1;
    let scale = 10f64.powi((4 - digits).clamp(0, 6));
    (value * scale).round() / scale
}

/// At most as long as a profile's source may be.
fn short(mut text: String) -> String {
    if text.len() > SOURCE_BYTES_MAX {
        let end = (0..=SOURCE_BYTES_MAX - 3).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        let of = [0.012_345, 1.234_56, 123.456, 33_554_432.0, 0.0].map(|value| rounded(value).to_string());
        assert_eq!(of, ["0.01235", "1.235", "123.5", "33554432", "0"]);
    }

    #[test]
    fn a_long_source_is_cut_between_characters() {
        let cut = short("ä".repeat(600));
        assert!(cut.len() <= SOURCE_BYTES_MAX && cut.ends_with('…'));
    }
}
