//! Small things that occur all over a file: texts, names, metrics.

use toml::Spanned;

use crate::experiment::error::{Place, Read};
use crate::experiment::metric::Metric;

/// A text that was written over several lines.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn check_name(place: Place<'_>, name: &Spanned<String>, key: &str) -> Read<()> {
    let text = name.get_ref();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if text.is_empty() || text.len() > 60 || !text.chars().all(fits) {
        let problem = format!("{key} is {text:?}; 1 to 60 letters, digits and - _ . + are possible");
        return Err(place.error(&name.span(), problem));
    }
    Ok(())
}

pub(super) fn metric(place: Place<'_>, path: &Spanned<String>, key: &str) -> Read<Metric> {
    Metric::parse(path.get_ref()).map_err(|error| place.error(&path.span(), format!("{key}: {error}")))
}

/// A metric that has a value of its own.
pub(super) fn readable(place: Place<'_>, path: &Spanned<String>, key: &str) -> Read<Metric> {
    let metric = metric(place, path, key)?;
    if metric.is_beside_published() {
        let problem = format!("{key}: {metric} has no value without a published figure beside it");
        return Err(place.error(&path.span(), problem));
    }
    Ok(metric)
}
