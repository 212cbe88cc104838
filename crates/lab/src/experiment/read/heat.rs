//! What `freehold heat -o` wrote, as an experiment: the watched program on slow memory, under policies that bring used pages
//! to fast memory. It is turned into the text of an experiment file, so that it means what such a file means.
//!
//! A region's resident memory is in four classes: accessed within 0.1 s, within 1 s, within 5 s, and not at all. They lie
//! in stretches that repeat, for where they lay nobody saw. Accessed bits say whether and not how often, so the rates are
//! the model's, as in the experiment `hot-pages`: a page of the second class has 2.5 accesses a second, of the third 0.4,
//! and the first class has all others.

use std::fmt::Write as _;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::experiment::error::{ExperimentError, Place, Read};

/// Accesses a second to a page that is accessed within 1 s and not within 0.1 s; within 5 s and not within 1 s.
const RATES: [f64; 2] = [2.5, 0.4];
/// Accesses a second of a task that computes as long as it accesses fast memory, 118 ns each.
const ALL_RATE: f64 = 1e9 / (2.0 * THINK_NS as f64);
const THINK_NS: u32 = 118;
/// Accesses a second of a unit of weight: weights are whole numbers.
const UNIT: f64 = 10.0;
/// Accesses of a task, so that it takes some 20 s on slow memory.
const ACCESSES: u64 = 60_000_000;
/// Stretches of a region, where it is large enough.
const STRETCHES: u32 = 4;
/// Programs beside each other, if the slow node has room for them: each has a thread.
const PROGRAMS: u32 = 16;
/// MiB that the programs may have together: the slow node of the machine has 256 GiB.
const ALL_MIB: u64 = 200 << 10;
const PAGES_PER_MIB: u32 = 256;

/// The file as `freehold heat` writes it.
#[derive(Deserialize)]
struct File {
    title: String,
    source: String,
    region: Vec<Spanned<Region>>,
}

#[derive(Deserialize)]
struct Region {
    name: String,
    mib: f64,
    within_100ms: f64,
    within_1s: f64,
    within_5s: f64,
}

/// A region's MiB by class (hot, warm, cool, cold), for one of its stretches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretches {
    count: u32,
    mib: [u32; 4],
}

/// Whether `text` is what `freehold heat` wrote: it has regions, and nothing to run.
pub(in crate::experiment) fn is_heat(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    table.contains_key("region")
        && !["variant", "sweep", "workload"].iter().any(|key| table.contains_key(*key))
}

/// The experiment file for it.
pub(in crate::experiment) fn experiment(place: Place<'_>) -> Read<String> {
    let file: File = toml::from_str(place.text).map_err(|error| place.toml(error))?;
    let mut regions = vec![];
    for region in &file.region {
        check(place, region)?;
        // Regions of less than half a MiB are not worth a segment.
        let whole = region.get_ref().mib.round() as u32;
        if whole > 0 {
            regions.push(stretches(region.get_ref(), whole));
        }
    }
    let mib: u64 = regions.iter().map(|region| u64::from(region.whole())).sum();
    if mib == 0 || mib > ALL_MIB {
        let problem = format!("its regions have {mib} MiB in all; 1 to {ALL_MIB} are possible");
        return Err(ExperimentError::new(place.file, problem));
    }
    Ok(text(place, &file, &regions, mib))
}

fn check(place: Place<'_>, region: &Spanned<Region>) -> Read<()> {
    let Region { name, mib, within_100ms, within_1s, within_5s } = region.get_ref();
    let shares = [0.0, *within_100ms, *within_1s, *within_5s, 1.0];
    if !(0.0..=1e6).contains(mib) || !shares.is_sorted() {
        let problem = format!(
            "region {name:?}: mib must be from 0 to 1000000, and within_100ms, within_1s and within_5s ascend from 0 to 1"
        );
        return Err(place.error(&region.span(), problem));
    }
    Ok(())
}

impl Stretches {
    fn whole(self) -> u32 {
        self.count * self.mib.iter().sum::<u32>()
    }
}

/// The classes of a region of `whole` MiB, in whole MiB: each class begins where the one before it ends.
fn stretches(region: &Region, whole: u32) -> Stretches {
    let count = if whole >= 16 * STRETCHES { STRETCHES } else { 1 };
    let each = whole / count;
    let ends = [region.within_100ms, region.within_1s, region.within_5s].map(|share| f64::from(each) * share);
    let [hot, warm, cool] = ends.map(|end| end.round() as u32);
    Stretches { count, mib: [hot, warm - hot, cool - warm, each - cool] }
}

/// Weights of a MiB of each class.
fn weights(regions: &[Stretches]) -> [f64; 4] {
    let pages = |class: usize| -> f64 {
        let mib = regions.iter().map(|region| u64::from(region.count * region.mib[class])).sum::<u64>();
        mib as f64 * f64::from(PAGES_PER_MIB)
    };
    let others: f64 = RATES.iter().zip([pages(1), pages(2)]).map(|(rate, pages)| rate * pages).sum();
    // Where memory is so large that the others alone were more, pages of the first class are as those of the second.
    let hot = ((ALL_RATE - others) / pages(0).max(1.0)).max(RATES[0]);
    [hot, RATES[0], RATES[1], 0.0].map(|rate| rate * f64::from(PAGES_PER_MIB) / UNIT)
}

fn text(place: Place<'_>, file: &File, regions: &[Stretches], mib: u64) -> String {
    let stem =
        std::path::Path::new(place.file).file_stem().map_or("heat".into(), |stem| stem.to_string_lossy());
    let name: String =
        stem.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(60).collect();
    let name = if name.is_empty() { "heat" } else { &name };
    let quoted = |text: &str| Value::String(text.into()).to_string();
    let programs = (ALL_MIB / mib).clamp(1, PROGRAMS.into());
    let passes = (ACCESSES / (mib * u64::from(PAGES_PER_MIB))).max(1);
    let about = format!(
        "{programs} programs like the one that freehold heat watched, on slow memory, whose pages are promoted or not. How \
         often pages are accessed is a model, of which docs/heat.md says how it was made."
    );
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "name = {}\ntitle = {}", quoted(name), quoted(&file.title));
    let _ = writeln!(out, "about = {}\nsource = {}", quoted(&about), quoted(&file.source));
    out += "machine = \"epyc-512-cxl\"\nshrink = 32\ncpus = \"0-127\"\nseeds = 1\nrun_ms = 60000\nconfidence = \"extrapolated\"\n";
    out += "because = \"how often the program accesses its pages is a model, and nobody measured it on that machine\"\n";
    out += "[knobs]\nvm.stat_interval = 32\n";
    let _ = writeln!(out, "[workload]\nkind = \"hot-pages\"\nhint_busy_percent = 54\n[[workload.processes]]");
    let _ =
        writeln!(out, "count = {programs}\nnode = 2\npasses = {passes}\nthink_ns = {THINK_NS}\nregions = [");
    let weights = weights(regions);
    for region in regions {
        let _ =
            writeln!(out, "  {{ mib = {}, segments = [{}] }},", region.whole(), segments(*region, weights));
    }
    out += "]\n";
    for Promotion { name, policy, balancing } in PROMOTIONS {
        let _ = writeln!(out, "[[variant]]\nname = \"{name}\"\npolicy = \"{policy}\"");
        let _ = writeln!(out, "knobs = {{ kernel.numa_balancing = {balancing} }}");
        out += "published = [\n";
        out += "  { metric = \"mean_ns.completion\", value = nan, unit = \"s\" },\n";
        out += "  { metric = \"ratio.accesses_slow/accesses_fast\", value = nan },\n";
        out += "  { metric = \"counters.pgpromote_success\", value = nan },\n]\n";
    }
    out
}

/// Who brings pages to fast memory.
struct Promotion {
    name: &'static str,
    policy: &'static str,
    /// `kernel.numa_balancing`: 2 promotes.
    balancing: u8,
}

const PROMOTIONS: &[Promotion] = &[
    Promotion { name: "stays", policy: "linux-6.16", balancing: 0 },
    Promotion { name: "numab2", policy: "linux-6.16", balancing: 2 },
    Promotion { name: "kmmscand-v3", policy: "kmmscand-v3", balancing: 0 },
    Promotion { name: "freehold", policy: "freehold", balancing: 0 },
];

/// A region's segments; a class that it has nothing of is none.
fn segments(region: Stretches, weights: [f64; 4]) -> String {
    let of_class = |(mib, weight): (u32, f64)| {
        // A class that is used at all has some weight.
        let weight = if weight > 0.0 { (f64::from(mib) * weight).round().max(1.0) } else { 0.0 };
        (mib > 0).then(|| format!("[{mib}, {}]", weight.min(4e9) as u32))
    };
    let all: Vec<String> = region.mib.into_iter().zip(weights).filter_map(of_class).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::spec::Experiment;

    const HEAT: &str = "title = \"words \\\"counted\\\"\"\nsource = \"measured\"\n\n\
        [[region]]\nname = \"heap\"\nmib = 1132.34\nwithin_100ms = 0.2252\nwithin_1s = 0.9207\nwithin_5s = 0.9995\n\n\
        [[region]]\nname = \"small\"\nmib = 2.2\nwithin_100ms = 0.0\nwithin_1s = 0.0\nwithin_5s = 0.5\n\n\
        [[region]]\nname = \"tiny\"\nmib = 0.3\nwithin_100ms = 1.0\nwithin_1s = 1.0\nwithin_5s = 1.0\n";

    #[test]
    fn what_heat_wrote_is_an_experiment() {
        let experiment = Experiment::parse("folder/my words.toml", HEAT).unwrap();
        assert_eq!((experiment.name.as_str(), experiment.title.as_str()), ("mywords", "words \"counted\""));
        let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["stays", "numab2", "kmmscand-v3", "freehold"]);
        assert_eq!(experiment.machines(), ["epyc-512-cxl"]);
    }

    #[test]
    fn all_that_were_watched_are_experiments() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/heat");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect();
        assert_eq!(files.len(), 6);
        for path in files {
            let experiment =
                Experiment::load(path.to_str().unwrap()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(Some(experiment.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
            assert_eq!(experiment.variants.len(), PROMOTIONS.len());
        }
    }

    #[test]
    fn classes_fill_their_region_and_weigh_by_rate() {
        let heap =
            Region { name: "heap".into(), mib: 0.0, within_100ms: 0.25, within_1s: 0.5, within_5s: 0.75 };
        let parts = stretches(&heap, 400);
        assert_eq!(parts, Stretches { count: 4, mib: [25, 25, 25, 25] });
        let [hot, warm, cool, cold] = weights(&[parts]);
        assert_eq!((warm, cold), (64.0, 0.0));
        assert!((cool - 10.24).abs() < 1e-9);
        // All accesses of a task, in units of ten a second.
        assert!(((hot + warm + cool) * 100.0 * UNIT - ALL_RATE).abs() < 1.0);
        assert_eq!(stretches(&heap, 7), Stretches { count: 1, mib: [2, 2, 1, 2] });
    }

    #[test]
    fn a_region_that_cannot_be_is_an_error_of_one_line() {
        for (from, to) in [
            ("within_5s = 0.9995", "within_5s = 0.1"),
            ("mib = 1132.34", "mib = -1.0"),
            ("mib = 1132.34", "mib = 1e9"),
        ] {
            let error = Experiment::parse("x.toml", &HEAT.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with("x.toml:") && error.lines().count() == 1, "{error}");
        }
        let error =
            Experiment::parse("x.toml", &HEAT.replace("mib = 1132.34\n", "")).unwrap_err().to_string();
        assert!(error.contains("mib"), "{error}");
    }
}
