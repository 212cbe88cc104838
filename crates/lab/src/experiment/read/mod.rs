//! From a file's text to an [`Experiment`]: defaults laid out, names resolved, figures in their metrics' units. What is
//! wrong is said with file, line and key.

mod file;
pub(super) mod heat;
mod missing;
mod parameters;
mod published;
mod sweep;
mod variant;
mod words;

use self::file::{File, VariantEntry};
use self::variant::Defaults;
use self::words::{check_name, one_line};
use super::error::{ExperimentError, Place, Read, Source};
use super::spec::Experiment;
use crate::measurements::NotCompared;

/// Most repetitions.
const SEEDS_MAX: u32 = 1000;
/// Most things that a file runs.
const VARIANTS_MAX: usize = 10_000;

pub(super) fn experiment(source: &Source<'_>) -> Read<Experiment> {
    let place = source.place;
    let file: File = toml::from_str(place.text).map_err(|error| {
        let lacks = error.message().starts_with("missing field");
        lacks.then(|| missing::keys(place)).flatten().unwrap_or_else(|| place.toml(error))
    })?;
    check_name(place, &file.name, "name")?;
    check_unique(place, &file.variant)?;
    let seeds = seeds(place, &file)?;
    let defaults = Defaults {
        machine: file.machine.as_ref(),
        policy: file.policy.as_ref(),
        cpus: file.cpus.as_ref(),
        shrink: file.shrink.as_ref(),
        warm_up_ms: file.warm_up_ms.as_ref(),
        run_ms: file.run_ms.as_ref(),
        knobs: &file.knobs,
        workload: &file.workload,
        confidence: file.confidence,
        because: file.because.as_deref(),
        tracer: file.tracer.as_ref(),
    };
    let variants = file
        .variant
        .iter()
        .map(|entry| variant::variant(source, &defaults, entry, &file.source))
        .collect::<Read<Vec<_>>>()?;
    let comparisons = file.compare.iter();
    let comparisons = comparisons
        .map(|entry| published::comparison(place, entry, &variants, &file.source))
        .collect::<Read<_>>()?;
    let sweeps =
        file.sweep.iter().map(|entry| sweep::sweep(source, &defaults, entry)).collect::<Read<Vec<_>>>()?;
    let cells: usize = sweeps.iter().map(|sweep| sweep.cells.len()).sum();
    if variants.is_empty() && cells == 0 {
        return Err(ExperimentError::new(place.file, "runs nothing: it has no [[variant]] and no [[sweep]]"));
    }
    if variants.len() + cells > VARIANTS_MAX {
        return Err(ExperimentError::new(place.file, format!("runs more than {VARIANTS_MAX} variants")));
    }
    let not_compared = file
        .not_compared
        .iter()
        .map(|entry| NotCompared { figures: one_line(&entry.figures), because: one_line(&entry.because) });
    let mut experiment = Experiment {
        name: file.name.into_inner(),
        title: one_line(&file.title),
        about: one_line(&file.about),
        learnt: one_line(&file.learnt),
        source: file.source,
        seeds,
        variants,
        comparisons,
        sweeps,
        not_compared: not_compared.collect(),
        file: place.file.into(),
    };
    super::independence::mark(&mut experiment);
    Ok(experiment)
}

fn seeds(place: Place<'_>, file: &File) -> Read<u32> {
    let seeds = *file.seeds.get_ref();
    if (1..=SEEDS_MAX).contains(&seeds) {
        return Ok(seeds);
    }
    Err(place.error(&file.seeds.span(), format!("seeds is {seeds}; 1 to {SEEDS_MAX} are possible")))
}

fn check_unique(place: Place<'_>, variants: &[VariantEntry]) -> Read<()> {
    for (index, entry) in variants.iter().enumerate() {
        check_name(place, &entry.name, "variant.name")?;
        if variants[..index].iter().any(|other| other.name == entry.name) {
            let problem = format!("variant.name: there are two variants called {}", entry.name);
            return Err(place.error(&entry.name.span(), problem));
        }
    }
    Ok(())
}
