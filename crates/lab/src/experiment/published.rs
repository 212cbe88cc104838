//! Published figures, from a file to their metrics' units.

use toml::Spanned;

use super::error::Place;
use super::file::{CompareEntry, FigureEntry, Form, HistogramEntry, Values};
use super::funclatency;
use super::metric::Metric;
use super::read::{Read, metric, readable};
use super::spec::{Case, Comparison, Figure, Histogram, Published, Variant};
use crate::measurements::Role;
use crate::scene::Phase;

/// Longest time that a figure may be of, in seconds: a year.
const SECONDS_MAX: f64 = 3.2e7;

pub(super) fn figure(place: Place<'_>, entry: &FigureEntry, phases: &[Phase], source: &str) -> Read<Figure> {
    let metric = metric(place, &entry.metric, "published.metric")?;
    let factor =
        unit(place, entry, &metric)? / seconds(place, entry.over_seconds.as_ref(), &metric)?.unwrap_or(1.0);
    let at_value = |problem: String| place.error(&entry.value.span(), format!("published.value: {problem}"));
    let published = match (entry.value.get_ref(), metric.sequence()) {
        (Values::Many(values), Some(_)) if !values.is_empty() => Published::Sequence(values.clone()),
        (Values::One(value), None) if !metric.is_beside_published() => Published::Value(value * factor),
        (_, Some(_)) => return Err(at_value(format!("{metric} takes a list of numbers"))),
        (Values::Many(_), None) => return Err(at_value(format!("{metric} takes one number"))),
        (Values::One(_), None) => {
            return Err(at_value(format!("{metric} comes from a [[variant.histogram]], not from a number")));
        }
    };
    Ok(Figure {
        phase: phase(place, entry.phase.as_ref(), phases, &entry.metric)?,
        metric,
        published,
        source: entry.source.clone().unwrap_or_else(|| source.to_owned()),
        role: entry.role,
    })
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
            role: if fitted { Role::Fitted } else { Role::Predicted },
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
                of(this).zip(of(against)).and_then(|(value, base)| set_against(entry.form, value, base));
            both.ok_or_else(|| {
                let problem =
                    format!("compare.value is missing, and not both variants have a published {metric}");
                place.error(&entry.metric.span(), problem)
            })?
        }
    };
    Ok(Comparison {
        case: this,
        against,
        metric,
        form: entry.form,
        published,
        source: entry.source.clone().unwrap_or_else(|| source.to_owned()),
        role: entry.role,
    })
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

fn published_value(variant: &Variant, phase: usize, metric: &Metric) -> Option<f64> {
    variant.figures.iter().find_map(|figure| match figure.published {
        Published::Value(value) if figure.phase == phase && figure.metric == *metric => Some(value),
        _ => None,
    })
}

/// `value` beside `base`; `None` beside 0.
pub(super) fn set_against(form: Form, value: f64, base: f64) -> Option<f64> {
    let ratio = (base != 0.0).then(|| value / base)?;
    Some(match form {
        Form::Ratio => ratio,
        Form::Percent => 100.0 * ratio,
        Form::Change => 100.0 * (ratio - 1.0),
    })
}

/// The unit of a comparison's rows.
pub(super) const fn unit_of(form: Form) -> &'static str {
    match form {
        Form::Ratio => "ratio",
        Form::Percent | Form::Change => "percent",
    }
}

/// What a comparison gives where nothing changed.
pub(super) const fn unchanged(form: Form) -> f64 {
    match form {
        Form::Ratio => 1.0,
        Form::Percent => 100.0,
        Form::Change => 0.0,
    }
}
