//! Times of paths from what kernels execute there, counted: instructions by how many of them a core does in a nanosecond.
//!
//! A profile says in `[core]` what is known of the core, and the common one in `[model]` what is fitted, once, to the
//! published rows of all machines together (docs/costs.md). What follows from these is filled in where a profile says
//! nothing itself. Neither section is left afterwards: what a simulation takes are times.

use toml::{Table, Value};

use super::counts::{self, BUILD};
use super::figure::{Figure, FigureKind, FigureSpec, base};
use super::read::{check_range, figure, unknown_base};

type Read<T> = Result<T, String>;

/// What times are derived from: the keys of `[core]` and `[model]`.
pub const BASES: &[FigureSpec] = &[
    base("core.clock_ghz", 0.1, 20.0).is("how fast the core runs while one thread works, GHz"),
    base("core.ipc_ratio", 0.05, 20.0)
        .is("instructions of the kernel's that a core of this design does in a cycle; Skylake's are 1"),
    base("model.list_ipc", 0.05, 10.0)
        .is("instructions a cycle on Skylake of what goes from page to page or object to object, misses of descriptors apart"),
    base("model.fault_ipc", 0.05, 10.0)
        .is("instructions a cycle on Skylake of a page fault, its exception and its misses included"),
    base("model.start_ns", 0.0, 10_000.0)
        .is("what beginning and ending a refill or a drain takes beside its instructions, ns: code and lines that have gone cold"),
    base("model.handover_transfers", 0.1, 100.0).is("a line's ways that handing over a contended lock takes"),
];

/// Accesses that mm tells for a page of a refill and for one of a drain: `lines_touched` holds mm to them.
const TOLD: f64 = 10.0 + 14.0;
/// Of munmap's and truncate's instructions: a third is the allocator's, which mm does itself.
const UNMAP_PART: f64 = 2.0 / 3.0;

/// What a stretch of a path consists of.
#[derive(Clone, Copy)]
enum Count {
    /// Its call, all pages apart.
    Call(&'static str),
    /// Its call, less the accesses that mm tells in it: these are charged as they come.
    LessTold(&'static str, f64),
    /// Its call, less that of another path, which mm does itself.
    Less(&'static str, &'static str),
    /// A part of its call.
    Part(&'static str, f64),
}

impl Count {
    fn instructions(self) -> f64 {
        let call = |path| counts::of(path).call;
        match self {
            Self::Call(path) => call(path),
            Self::LessTold(path, told) => (call(path) - told * told_each()).max(0.0),
            Self::Less(path, part) => call(path) - call(part),
            Self::Part(path, part) => call(path) * part,
        }
    }

    fn told(self) -> String {
        match self {
            Self::Call(path) => path.to_owned(),
            Self::LessTold(path, told) => format!("{path} less {told} accesses that are told"),
            Self::Less(path, part) => format!("{path} less {part}"),
            Self::Part(path, part) => format!("{part:.2} of {path}"),
        }
    }
}

/// How fast a core goes through a count: a key of [`BASES`].
type Pace = &'static str;
const LIST: Pace = "model.list_ipc";
const FAULT: Pace = "model.fault_ipc";

/// Figures that follow from counts, each with what it is the sum of.
const COUNTED: &[(&str, &[(Count, Pace)])] = &[
    ("path.page_alloc_ns", &[(Count::LessTold("page-alloc", 5.0), LIST)]),
    ("path.page_free_ns", &[(Count::LessTold("page-free", 5.0), LIST)]),
    ("path.slab_alloc_ns", &[(Count::LessTold("slab-alloc", 2.0), LIST)]),
    ("path.slab_free_ns", &[(Count::LessTold("slab-free", 2.0), LIST)]),
    ("path.fault_ns", &[(Count::Less("fault", "page-alloc"), FAULT)]),
    // What a shared fault has on top is work on the file and its counters, without another exception.
    (
        "path.shared_fault_ns",
        &[(Count::Less("fault", "page-alloc"), FAULT), (Count::Less("shared-fault", "fault"), LIST)],
    ),
    ("path.lru_add_ns", &[(Count::Call("lru-add"), LIST)]),
    ("path.unmap_ns", &[(Count::Part("munmap", UNMAP_PART), LIST)]),
    ("path.truncate_ns", &[(Count::Part("truncate", UNMAP_PART), LIST)]),
];
/// The same of what also has a start.
const STARTED: &[(&str, &[(Count, Pace)])] = &[
    ("path.refill_ns", &[(Count::Call("refill"), LIST)]),
    ("path.drain_ns", &[(Count::Call("drain"), LIST)]),
];
/// Ways of a line, by closeness.
const WAYS: [&str; 4] = ["smt_ns", "same_llc_ns", "same_socket_ns", "cross_socket_ns"];

/// Instructions that an access which mm tells stands for.
fn told_each() -> f64 {
    (counts::of("refill").page + counts::of("drain").page) / TOLD
}

/// Takes `[core]` and `[model]` out of `table`, and puts in what follows from them and is not there.
pub(super) fn fill(table: &mut Table) -> Read<()> {
    let [core, model] = ["core", "model"].map(|section| table.remove(section));
    if let Some(bases) = Bases::read(core, model)? {
        bases.fill(table);
    }
    if let Some(fault) = table.get("path").and_then(|path| path.get("fault_ns")) {
        let fault = figure("path.fault_ns", fault.clone())?;
        offer(table, "path.exception_ns", || exception(&fault));
    }
    Ok(())
}

/// The part of a fault's instructions that its exception is; it is known as well as the fault is.
fn exception(fault: &Figure) -> Figure {
    let [whole, served] = ["fault", "fault-served"].map(|path| counts::of(path).call);
    let source =
        format!("{:.0} of the {whole:.0} instructions of path.fault_ns; {BUILD}, counted", whole - served);
    Figure::new(rounded(fault.value * (1.0 - served / whole)), fault.kind, source)
}

/// The figures of [`BASES`], in their order.
struct Bases(Vec<Figure>);

impl Bases {
    /// `None` if the profile does not say what core it has.
    fn read(core: Option<Value>, model: Option<Value>) -> Read<Option<Self>> {
        let Some(core) = core else { return Ok(None) };
        let mut core = keys("core", core)?;
        let mut model = model.map_or_else(|| Ok(Table::new()), |model| keys("model", model))?;
        let mut figures = vec![];
        for spec in BASES {
            let (section, key) = spec.key.split_once('.').unwrap_or((spec.key, ""));
            let from = if section == "core" { &mut core } else { &mut model };
            let missing = || format!("{} is missing: {}", spec.key, spec.meaning);
            let told = figure(spec.key, from.remove(key).ok_or_else(missing)?)?;
            check_range(spec, told.value)?;
            figures.push(told);
        }
        Ok(Some(Self(figures)))
    }

    /// Puts in what follows from them.
    fn fill(&self, table: &mut Table) {
        for &(key, parts) in COUNTED {
            offer(table, key, || self.time(parts));
        }
        for &(key, parts) in STARTED {
            offer(table, key, || self.started(&self.time(parts)));
        }
        if let Some(l1) = value(table, "cache.l1_ns") {
            offer(table, "cpu.touch_ns", || self.touch(l1));
        }
        for way in WAYS {
            if let Some(transfer) = value(table, &format!("transfer.{way}")) {
                offer(table, &format!("handover.{way}"), || self.handover(transfer));
            }
        }
    }

    fn figure(&self, key: &str) -> &Figure {
        let place = BASES.iter().position(|spec| spec.key == key).expect("a key of BASES");
        &self.0[place]
    }

    fn of(&self, key: &str) -> f64 {
        self.figure(key).value
    }

    /// Instructions in a cycle at `pace` on this core.
    fn ipc(&self, pace: Pace) -> f64 {
        self.of(pace) * self.of("core.ipc_ratio")
    }

    fn time(&self, parts: &[(Count, Pace)]) -> Figure {
        let clock = self.of("core.clock_ghz");
        let time = |&(count, pace): &(Count, Pace)| count.instructions() / (self.ipc(pace) * clock);
        let told = |&(count, pace): &(Count, Pace)| {
            format!(
                "{:.0} instructions ({}) at {:.2} a cycle",
                count.instructions(),
                count.told(),
                self.ipc(pace)
            )
        };
        let all: Vec<String> = parts.iter().map(told).collect();
        counted(parts.iter().map(time).sum(), format!("{}, {clock} GHz; {BUILD}, counted", all.join(" and ")))
    }

    fn started(&self, path: &Figure) -> Figure {
        let Figure { value, kind, source, .. } = self.figure("model.start_ns");
        let source = format!("{}; and {value} ns of a start: {source}", path.source);
        Figure::new(rounded(path.value + value), *kind, source)
    }

    /// Instructions around a line that is in the first level: its latency is in their pace already.
    fn touch(&self, l1: f64) -> Figure {
        let (each, ipc, clock) = (told_each(), self.ipc(LIST), self.of("core.clock_ghz"));
        let source = format!(
            "{each:.1} instructions counted for each access told (refill and drain, {BUILD}), {ipc:.2} a cycle, {clock} GHz, less a hit's latency"
        );
        counted((each / (ipc * clock) - l1).max(0.0), source)
    }

    fn handover(&self, transfer: f64) -> Figure {
        let Figure { value, kind, source, .. } = self.figure("model.handover_transfers");
        Figure::new(rounded(value * transfer), *kind, format!("{value} of the line's ways: {source}"))
    }
}

/// A section's keys, all of them of [`BASES`].
fn keys(section: &str, value: Value) -> Read<Table> {
    let Value::Table(table) = value else { return Err(unknown_base(section)) };
    let full = |key: &String| format!("{section}.{key}");
    match table.keys().map(full).find(|key| BASES.iter().all(|spec| spec.key != key)) {
        Some(wrong) => Err(unknown_base(&wrong)),
        None => Ok(table),
    }
}

fn counted(value: f64, source: String) -> Figure {
    Figure::new(rounded(value), FigureKind::Counted, source)
}

/// To a picosecond.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn value(table: &Table, key: &str) -> Option<f64> {
    let (section, key) = key.split_once('.')?;
    let value = table.get(section)?.get(key)?.get("value")?;
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// Puts `key` into `table` where it is not there.
fn offer(table: &mut Table, key: &str, figure: impl FnOnce() -> Figure) {
    let (section, key) = key.split_once('.').expect("a key has a section");
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(section) = section else { return };
    if !section.contains_key(key) {
        section.insert(key.to_owned(), written(&figure()));
    }
}

fn written(figure: &Figure) -> Value {
    let mut table = Table::new();
    table.insert("value".into(), Value::Float(figure.value));
    table.insert("kind".into(), Value::String(figure.kind.name().into()));
    table.insert("source".into(), Value::String(figure.source.clone()));
    Value::Table(table)
}
