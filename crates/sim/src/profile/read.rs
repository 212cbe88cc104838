//! From a table to a profile: every figure looked up by its key, everything checked, every error one line.

use std::collections::BTreeMap;

use mm::WordSize;
use toml::{Table, Value};

use super::extend::Laid;
use super::figure::{FIGURES, Figure, FigureKind, FigureSpec, FigureSpread};
use super::shape::{LOW_END_MIB, NodeShape, Shape, SmtNumbering};
use super::{BASES, Profile, ProfileError, derive, did_you_mean, missing};

type Read<T> = Result<T, String>;

/// Figures of which each must not be less than the one before, in every profile.
pub const ORDERED: &[&[&str]] = &[
    &["cache.l1_ns", "cache.l2_ns", "cache.l3_ns", "dram.local_ns", "dram.remote_ns"],
    &["transfer.same_llc_ns", "transfer.same_socket_ns", "transfer.cross_socket_ns"],
    &["cache.l1_bytes", "cache.l2_bytes"],
    &["dram.loaded_half_ratio", "dram.loaded_full_ratio"],
    &["tlb.huge_entries", "tlb.entries"],
];

/// What a `[topology]` may say.
const SHAPE: [&str; 11] = [
    "sockets",
    "cores_per_socket",
    "threads_per_core",
    "cores_per_llc",
    "smt_numbering",
    "nodes",
    "distances",
    "cpuset_nodes",
    "low_end_mib",
    "word_bits",
    "source",
];

pub(super) fn profile(name: &str, laid: Laid) -> Result<Profile, ProfileError> {
    let Laid { mut table, lines } = laid;
    let mut build = || -> Read<Profile> {
        let own_name = optional(&mut table, "name", string)?.unwrap_or_else(|| name.into());
        let title = optional(&mut table, "title", string)?.unwrap_or_default();
        derive::fill(&mut table)?;
        check_keys(&table)?;
        if let Some(all) = missing::in_a_line(&table, &lines).filter(|_| table.contains_key("topology")) {
            return Err(all);
        }
        let Some(topology) = table.remove("topology") else {
            return Err("has no [topology], so it is no machine but a base for others".into());
        };
        let shape = shape(topology)?;
        let figures = figures(table.clone())?;
        check_order(&figures)?;
        let topology = shape.topology(figures["cache.l3_bytes"].value)?;
        Ok(Profile { name: own_name, title, shape, figures, topology })
    };
    build().map_err(|problem| ProfileError::new(name, lines.told(problem)))
}

/// A key that does not exist is said before those that are missing: it may be one of them, misspelt.
fn check_keys(table: &Table) -> Read<()> {
    for (section, value) in table.iter().filter(|(section, _)| *section != "topology") {
        let Value::Table(keys) = value else { return Err(unknown_key(section)) };
        let all: Vec<String> = keys.keys().map(|key| format!("{section}.{key}")).collect();
        let is_known = |key: &&String| FIGURES.iter().any(|spec| spec.key == key.as_str());
        if let Some(wrong) = all.iter().find(|key| !is_known(key)) {
            return Err(unknown_key(wrong));
        }
    }
    Ok(())
}

fn figures(table: Table) -> Read<BTreeMap<&'static str, Figure>> {
    let mut sections: BTreeMap<String, Table> = BTreeMap::new();
    for (section, value) in table {
        match value {
            Value::Table(table) => sections.insert(section, table),
            _ => return Err(unknown_key(&section)),
        };
    }
    let mut figures = BTreeMap::new();
    for spec in FIGURES {
        let (section, key) = spec.key.split_once('.').unwrap_or((spec.key, ""));
        let Some(value) = sections.get_mut(section).and_then(|table| table.remove(key)) else {
            return Err(format!("{} is missing: {}", spec.key, spec.meaning));
        };
        let figure = figure(spec.key, value)?;
        check_range(spec, figure.value)?;
        figures.insert(spec.key, figure);
    }
    Ok(figures)
}

pub(super) fn unknown_key(key: &str) -> String {
    format!("{key} is not known{}", did_you_mean(key, FIGURES.iter().map(|spec| spec.key)))
}

/// The same of a key of [`BASES`].
pub(super) fn unknown_base(key: &str) -> String {
    format!("{key} is not known{}", did_you_mean(key, BASES.iter().map(|spec| spec.key)))
}

pub(super) fn check_range(spec: &FigureSpec, value: f64) -> Read<()> {
    if (spec.min..=spec.max).contains(&value) {
        return Ok(());
    }
    Err(format!("{} is {value}; {} to {} are possible", spec.key, spec.min, spec.max))
}

pub(super) fn check_order(figures: &BTreeMap<&'static str, Figure>) -> Read<()> {
    for pair in ORDERED.iter().flat_map(|chain| chain.windows(2)) {
        let (less, more) = (figures[pair[0]].value, figures[pair[1]].value);
        if less > more {
            return Err(format!("{} is {less}, more than {}, which is {more}", pair[0], pair[1]));
        }
    }
    Ok(())
}

pub(super) fn figure(key: &str, value: Value) -> Read<Figure> {
    let Value::Table(mut table) = value else {
        return Err(format!(
            "{key} must be {{ value, kind, source }}: a bare {} has no source",
            value.type_str()
        ));
    };
    let in_figure = |problem| format!("{key}: {problem}");
    let figure = Figure {
        value: required(&mut table, "value", number).map_err(in_figure)?,
        kind: required(&mut table, "kind", kind).map_err(in_figure)?,
        source: required(&mut table, "source", string).map_err(in_figure)?,
        spread: optional(&mut table, "spread", spread).map_err(in_figure)?,
    };
    if figure.source.trim().is_empty() {
        return Err(in_figure("source is empty".into()));
    }
    no_more(&table, key)?;
    Ok(figure)
}

fn spread(value: Value) -> Read<FigureSpread> {
    let Value::Table(mut table) = value else {
        return Err("must be { min, p25, p75, max, samples }".into());
    };
    let mut read = || -> Read<FigureSpread> {
        Ok(FigureSpread {
            min: required(&mut table, "min", number)?,
            p25: required(&mut table, "p25", number)?,
            p75: required(&mut table, "p75", number)?,
            max: required(&mut table, "max", number)?,
            samples: required(&mut table, "samples", count)?,
        })
    };
    let spread = read()?;
    no_more(&table, "spread")?;
    let rising = [spread.min, spread.p25, spread.p75, spread.max];
    if spread.samples == 0 || !rising.windows(2).all(|pair| pair[0] <= pair[1]) {
        return Err("must rise from min to max and be of one sample at least".into());
    }
    Ok(spread)
}

fn shape(value: Value) -> Read<Shape> {
    let Value::Table(mut table) = value else { return Err("topology must be a table".into()) };
    let mut build = || -> Read<Shape> {
        let shape = Shape {
            sockets: required(&mut table, "sockets", count)?,
            cores_per_socket: required(&mut table, "cores_per_socket", count)?,
            threads_per_core: required(&mut table, "threads_per_core", count)?,
            cores_per_llc: required(&mut table, "cores_per_llc", count)?,
            smt_numbering: required(&mut table, "smt_numbering", numbering)?,
            nodes: required(&mut table, "nodes", list(node))?,
            distances: required(&mut table, "distances", list(list(count)))?,
            cpuset_nodes: optional(&mut table, "cpuset_nodes", list(count))?,
            low_end_mib: optional(&mut table, "low_end_mib", count)?.unwrap_or(LOW_END_MIB),
            word: optional(&mut table, "word_bits", word)?.unwrap_or_default(),
            source: required(&mut table, "source", string)?,
        };
        no_more_of(&table, &SHAPE)?;
        Ok(shape)
    };
    build().map_err(|problem| format!("topology.{problem}"))
}

fn word(value: Value) -> Read<WordSize> {
    match count(value)? {
        32 => Ok(WordSize::Bits32),
        64 => Ok(WordSize::Bits64),
        bits => Err(format!("is {bits}; there are 32 and 64")),
    }
}

fn node(value: Value) -> Read<NodeShape> {
    let Value::Table(mut table) = value else { return Err("must be a table".into()) };
    let node = NodeShape {
        socket: required(&mut table, "socket", count)?,
        memory_mib: required(&mut table, "memory_mib", whole)?,
        extra_ns: optional(&mut table, "extra_ns", number)?.unwrap_or(0.0),
        gbps: optional(&mut table, "gbps", number)?,
        has_cpus: optional(&mut table, "has_cpus", boolean)?.unwrap_or(true),
    };
    no_more(&table, "node")?;
    Ok(node)
}

fn required<T>(table: &mut Table, key: &str, read: impl Fn(Value) -> Read<T>) -> Read<T> {
    optional(table, key, read)?.ok_or_else(|| format!("{key} is missing"))
}

fn optional<T>(table: &mut Table, key: &str, read: impl Fn(Value) -> Read<T>) -> Read<Option<T>> {
    table.remove(key).map(read).transpose().map_err(|problem| format!("{key} {problem}"))
}

fn no_more(table: &Table, place: &str) -> Read<()> {
    table.keys().next().map_or(Ok(()), |key| Err(format!("{place}.{key} is not known")))
}

/// As [`no_more`], with the nearest of the keys that there are.
fn no_more_of(table: &Table, known: &[&str]) -> Read<()> {
    table
        .keys()
        .next()
        .map_or(Ok(()), |key| Err(format!("{key} is not known{}", did_you_mean(key, known.iter().copied()))))
}

fn list<T>(read: impl Fn(Value) -> Read<T>) -> impl Fn(Value) -> Read<Vec<T>> {
    move |value| match value {
        Value::Array(values) if values.len() <= 1024 => values.into_iter().map(&read).collect(),
        Value::Array(values) => Err(format!("has {} entries", values.len())),
        other => Err(format!("must be a list, not {}", other.type_str())),
    }
}

fn string(value: Value) -> Read<String> {
    match value {
        Value::String(text) if text.len() <= 1000 => Ok(text),
        Value::String(_) => Err("is longer than 1000 bytes".into()),
        other => Err(format!("must be a string, not {}", other.type_str())),
    }
}

fn number(value: Value) -> Read<f64> {
    match value {
        Value::Float(number) => Ok(number),
        Value::Integer(number) => Ok(number as f64),
        other => Err(format!("must be a number, not {}", other.type_str())),
    }
}

fn whole(value: Value) -> Read<u64> {
    match value {
        Value::Integer(number) => u64::try_from(number).map_err(|_| format!("is {number}, less than 0")),
        other => Err(format!("must be a whole number, not {}", other.type_str())),
    }
}

fn count(value: Value) -> Read<u32> {
    let number = whole(value)?;
    u32::try_from(number).map_err(|_| format!("is {number}, too large"))
}

fn boolean(value: Value) -> Read<bool> {
    match value {
        Value::Boolean(answer) => Ok(answer),
        other => Err(format!("must be true or false, not {}", other.type_str())),
    }
}

fn kind(value: Value) -> Read<FigureKind> {
    let text = string(value)?;
    let names = FigureKind::ALL.map(FigureKind::name).join(", ");
    FigureKind::ALL
        .into_iter()
        .find(|kind| kind.name() == text)
        .ok_or_else(|| format!("is {text:?}, not one of {names}"))
}

fn numbering(value: Value) -> Read<SmtNumbering> {
    match string(value)?.as_str() {
        "split" => Ok(SmtNumbering::Split),
        "adjacent" => Ok(SmtNumbering::Adjacent),
        other => Err(format!("is {other:?}, not \"split\" or \"adjacent\"")),
    }
}
