//! Published figures, from a file to their metrics' units.

use toml::Spanned;

use super::words::{metric, one_line, readable};
use crate::experiment::error::{Place, Read};
use crate::experiment::funclatency;
use crate::experiment::metric::Metric;
use crate::experiment::read::file::{CompareEntry, FigureEntry, HistogramEntry, Values};
use crate::experiment::spec::{Case, Comparison, Figure, Form, Histogram, Published, Variant, Way};
use crate::measurements::Role;
use crate::scene::Phase;

/// Longest time that a figure may be of, in seconds: a year.
const SECONDS_MAX: f64 = 3.2e7;

pub(super) fn figure(place: Place<'_>, entry: &FigureEntry, phases: &[Phase], source: &str) -> Read<Figure> {
    let metric = metric(place, &entry.metric, "published.metric")?;
    let factor =
        unit(place, entry, &metric)? / seconds(place, entry.over_seconds.as_ref(), &metric)?.unwrap_or(1.0);
    let published = match (&entry.value, &entry.range) {
        (Some(value), None) => value_of(place, value, &metric, factor)?,
        (None, Some(range)) => range_of(place, range, &metric, factor)?,
        _ => {
            let problem = format!("published: {metric} takes a value or a range, one of the two");
            return Err(place.error(&entry.metric.span(), problem));
        }
    };
    Ok(Figure {
        phase: phase(place, entry.phase.as_ref(), phases, &entry.metric)?,
        uncertainty: uncertainty(place, entry)?.map(|error| error * factor),
        metric,
        published,
        source: entry.source.clone().unwrap_or_else(|| source.to_owned()),
        role: role(place, entry.role.as_ref(), entry.because.as_deref())?,
        because: entry.because.as_deref().map(one_line).unwrap_or_default(),
    })
}

fn value_of(place: Place<'_>, value: &Spanned<Values>, metric: &Metric, factor: f64) -> Read<Published> {
    let at_value = |problem: String| place.error(&value.span(), format!("published.value: {problem}"));
    match (value.get_ref(), metric.sequence()) {
        (Values::Many(values), Some(_)) if !values.is_empty() => Ok(Published::Sequence(values.clone())),
        (Values::One(value), None) if !metric.is_beside_published() => Ok(Published::Value(value * factor)),
        (_, Some(_)) => Err(at_value(format!("{metric} takes a list of numbers"))),
        (Values::Many(_), None) => Err(at_value(format!("{metric} takes one number"))),
        (Values::One(_), None) => {
            Err(at_value(format!("{metric} comes from a [[variant.histogram]], not from a number")))
        }
    }
}

fn range_of(place: Place<'_>, range: &Spanned<[f64; 2]>, metric: &Metric, factor: f64) -> Read<Published> {
    let at_range = |problem: String| place.error(&range.span(), format!("published.range: {problem}"));
    let [low, high] = *range.get_ref();
    if !(low.is_finite() && high.is_finite() && low < high) {
        return Err(at_range("the lower end comes first, and both are numbers".into()));
    }
    if metric.sequence().is_some() || metric.is_beside_published() {
        return Err(at_range(format!("{metric} has none")));
    }
    Ok(Published::Range([low * factor, high * factor]))
}

/// What a role stands on: one that takes a row out of the score needs a reason.
fn role(place: Place<'_>, role: Option<&Spanned<Role>>, because: Option<&str>) -> Read<Role> {
    let Some(role) = role else { return Ok(Role::default()) };
    match (*role.get_ref(), because) {
        (Role::Zero, _) => Err(place.error(&role.span(), "role: zero is found out, not written down")),
        (Role::Derived | Role::Noise, None) => {
            let problem =
                format!("role is {}, and because is missing: from or by what", role.get_ref().name());
            Err(place.error(&role.span(), problem))
        }
        (role, _) => Ok(role),
    }
}

/// The standard error of a published mean.
fn uncertainty(place: Place<'_>, entry: &FigureEntry) -> Read<Option<f64>> {
    let Some(stddev) = &entry.stddev else { return Ok(None) };
    if !(*stddev.get_ref() >= 0.0 && stddev.get_ref().is_finite()) {
        return Err(place.error(&stddev.span(), "stddev is no deviation: 0 or more is"));
    }
    let runs = entry.runs.as_ref().map_or(1, |runs| *runs.get_ref());
    match (runs, &entry.runs) {
        (0, Some(given)) => Err(place.error(&given.span(), "runs is 0")),
        _ => Ok(Some(stddev.get_ref() / f64::from(runs).sqrt())),
    }
}

/// What one of the file's unit is in the metric's.
fn unit(place: Place<'_>, entry: &FigureEntry, metric: &Metric) -> Read<f64> {
    let Some(unit) = &entry.unit else { return Ok(1.0) };
    let is_time = metric.unit() == "ns" || metric.unit().starts_with("ns/");
    match unit.get_ref().as_str() {
        same if same == metric.unit() => Ok(1.0),
        "ns" if is_time => Ok(1.0),
        "us" if is_time => Ok(1e3),
        "ms" if is_time => Ok(1e6),
        "s" if is_time => Ok(1e9),
        other => {
            let times = if is_time { "; ns, us, ms and s are possible" } else { "" };
            let problem = format!("published.unit is {other:?}; {metric} is in {}{times}", metric.unit());
            Err(place.error(&unit.span(), problem))
        }
    }
}

/// For how many seconds it was counted; only a rate can be.
fn seconds(place: Place<'_>, given: Option<&Spanned<f64>>, metric: &Metric) -> Read<Option<f64>> {
    let Some(given) = given else { return Ok(None) };
    let at = |problem: String| place.error(&given.span(), format!("over_seconds{problem}"));
    let seconds = *given.get_ref();
    if !(seconds > 0.0 && seconds <= SECONDS_MAX) {
        return Err(at(format!(" is {seconds}; more than 0 and at most {SECONDS_MAX} are possible")));
    }
    if !metric.unit().ends_with("/s") {
        return Err(at(format!(": {metric} is no rate; a count or a total is compared as …_per_second")));
    }
    Ok(Some(seconds))
}

fn phase(
    place: Place<'_>,
    name: Option<&Spanned<String>>,
    phases: &[Phase],
    at: &Spanned<String>,
) -> Read<usize> {
    match name {
        Some(name) => phases.iter().position(|phase| phase.name == *name.get_ref()).ok_or_else(|| {
            place.error(&name.span(), format!("phase: the variant has no phase {:?}", name.get_ref()))
        }),
        None if phases.len() == 1 => Ok(0),
        None => Err(place.error(&at.span(), "phase is missing: the variant has several")),
    }
}

/// A histogram, and the figures that it is compared in: mean, distance, and as rates its count and total.
pub(super) fn histogram(
    place: Place<'_>,
    entry: &HistogramEntry,
    phases: &[Phase],
    source: &str,
) -> Read<(Histogram, Vec<Figure>)> {
    let published = funclatency::read(entry.text.get_ref())
        .map_err(|problem| place.error(&entry.text.span(), format!("histogram.text: {problem}")))?;
    let of_span = |figure: &str| {
        Metric::parse(&format!("{}.{figure}", entry.span.get_ref()))
            .map_err(|error| place.error(&entry.span.span(), format!("histogram.span: {error}")))
    };
    let over_seconds = seconds(place, entry.over_seconds.as_ref(), &of_span("count_per_second")?)?;
    let mut compared =
        vec![("mean_ns", Published::Value(published.total_ns as f64 / published.count as f64))];
    if let Some(seconds) = over_seconds {
        compared.push(("count_per_second", Published::Value(published.count as f64 / seconds)));
        compared.push(("total_ns_per_second", Published::Value(published.total_ns as f64 / seconds)));
    }
    compared.push(("emd_buckets", Published::Histogram(published.clone())));
    if let Some(wrong) =
        entry.fitted.iter().find(|name| !compared.iter().any(|(known, _)| known == name.get_ref()))
    {
        let known: Vec<&str> = compared.iter().map(|(name, _)| *name).collect();
        let problem = format!("histogram.fitted: {:?} is none of {}", wrong.get_ref(), known.join(", "));
        return Err(place.error(&wrong.span(), problem));
    }
    let phase = phase(place, entry.phase.as_ref(), phases, &entry.span)?;
    let figure = |(name, published): (&str, Published)| {
        let fitted = entry.fitted.iter().any(|fitted| fitted.get_ref() == name);
        Ok(Figure {
            phase,
            metric: of_span(name)?,
            published,
            source: entry.source.clone().unwrap_or_else(|| source.to_owned()),
            uncertainty: None,
            role: if fitted { Role::Fitted } else { Role::Predicted },
            because: entry.because.as_deref().filter(|_| fitted).map(one_line).unwrap_or_default(),
        })
    };
    let figures = compared.into_iter().map(figure).collect::<Read<_>>()?;
    Ok((Histogram { phase, span: entry.span.get_ref().clone(), published, over_seconds }, figures))
}

pub(super) fn comparison(
    place: Place<'_>,
    entry: &CompareEntry,
    variants: &[Variant],
    source: &str,
) -> Read<Comparison> {
    let of = |name: &Spanned<String>, key: &str| case(place, name, key, variants);
    let (this, against) = (of(&entry.variant, "compare.variant")?, of(&entry.against, "compare.against")?);
    let metric = readable(place, &entry.metric, "compare.metric")?;
    let published = match &entry.value {
        Some(value) if !value.get_ref().is_infinite() => *value.get_ref(),
        Some(value) => return Err(place.error(&value.span(), "compare.value is infinite")),
        None => {
            let of = |case: Case| published_value(&variants[case.variant], case.phase, &metric);
            let both =
                of(this).zip(of(against)).and_then(|(value, base)| entry.form.set_against(value, base));
            both.ok_or_else(|| {
                let problem =
                    format!("compare.value is missing, and not both variants have a published {metric}");
                place.error(&entry.metric.span(), problem)
            })?
        }
    };
    let figures = [this, against].map(|case| figure_of(&variants[case.variant], case.phase, &metric));
    let role = role(place, entry.role.as_ref(), entry.because.as_deref())?;
    Ok(Comparison {
        case: this,
        against,
        form: entry.form,
        way: way(place, entry, role, published, figures)?,
        is_noise_known: entry.noise.is_some()
            || entry.stddev.is_some()
            || figures.iter().all(|figure| figure.is_some_and(|figure| figure.uncertainty.is_some())),
        metric,
        published,
        source: entry.source.clone().unwrap_or_else(|| source.to_owned()),
        role,
        because: entry.because.as_deref().or(entry.noise.as_deref()).map(one_line).unwrap_or_default(),
    })
}

/// Changes up to this many percent say nothing of a direction where the published noise is not known.
const NOISE_PERCENT: f64 = 1.0;
/// Standard errors that a published change must be larger than.
const ERRORS: f64 = 2.0;

fn way(
    place: Place<'_>,
    entry: &CompareEntry,
    role: Role,
    published: f64,
    figures: [Option<&Figure>; 2],
) -> Read<Way> {
    let is_fitted = figures.iter().all(|figure| figure.is_some_and(|figure| figure.role == Role::Fitted));
    let is_told = role == Role::Derived && !entry.own_direction;
    if role == Role::Fitted || is_fitted || is_told {
        return Ok(Way::NotAsked);
    }
    if entry.noise.is_some() || role == Role::Noise {
        return Ok(Way::Noise);
    }
    let scale = if entry.form.unit() == "percent" { 100.0 } else { 1.0 };
    if let Some(stddev) = &entry.stddev {
        return match *stddev.get_ref() {
            of if of >= 0.0 && of.is_finite() => Ok(Way::Beyond(ERRORS * of)),
            _ => Err(place.error(&stddev.span(), "compare.stddev is no deviation: 0 or more is")),
        };
    }
    let parts = figures.map(|figure| {
        let Published::Value(value) = figure?.published else { return None };
        Some(figure?.uncertainty? / value)
    });
    let ratio = (published + if entry.form == Form::Change { 100.0 } else { 0.0 }) / scale;
    Ok(Way::Beyond(match parts {
        [Some(one), Some(two)] => ERRORS * scale * ratio.abs() * one.hypot(two),
        _ => scale * NOISE_PERCENT / 100.0,
    }))
}

fn case(place: Place<'_>, name: &Spanned<String>, key: &str, variants: &[Variant]) -> Read<Case> {
    let mut known = vec![];
    for (index, variant) in variants.iter().enumerate() {
        for phase in 0..variant.phases.len() {
            if variant.case_name(phase) == *name.get_ref() {
                return Ok(Case { variant: index, phase });
            }
            known.push(variant.case_name(phase));
        }
    }
    let problem = format!("{key}: nothing is called {:?}; there are {}", name.get_ref(), known.join(", "));
    Err(place.error(&name.span(), problem))
}

fn figure_of<'a>(variant: &'a Variant, phase: usize, metric: &Metric) -> Option<&'a Figure> {
    let is_value = |figure: &&Figure| matches!(figure.published, Published::Value(_));
    let same = |figure: &&Figure| figure.phase == phase && figure.metric == *metric;
    variant.figures.iter().filter(is_value).find(same)
}

fn published_value(variant: &Variant, phase: usize, metric: &Metric) -> Option<f64> {
    match figure_of(variant, phase, metric)?.published {
        Published::Value(value) => Some(value),
        _ => None,
    }
}
