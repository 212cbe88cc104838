//! The machine of a scene: its zones with as much free as its kernel had at the first mark, by type (`types`), and what was set.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::knobs::StandsFor;
use mm::vm::SwapDevice;
use mm::{
    Bare, CpuSpec, KNOBS, Knob, Knobs, MigrateType, Mm, Nanos, Node, NodeSpec, Policy, Request, Topology,
    Urgency, WordSize, ZoneKind,
};

use super::daemons::{Daemons, StatFlushes};
use super::kcompactd::Kcompactd;
use super::settings::Settings;
use super::types::Types;
use crate::conform::read::capture::{kernel_version, spec};
use crate::conform::read::sections::{FormatError, Section, Sections};
use crate::conform::read::zoneinfo::{ZoneInfo, zones};
use crate::script::program::{Code, Line, What};
use crate::script::words::size;

/// The machine that a scene is played on.
pub(super) struct Played {
    pub(super) mm: Rc<Mm<Bare>>,
    pub(super) daemons: Rc<Daemons>,
    /// What a page comes to in compressed swap.
    device: SwapDevice,
    /// The disk for swap, and its bytes.
    swap_disk: (SwapDevice, u64),
    pub(super) settings: RefCell<Settings>,
    pub(super) kcompactd: Kcompactd,
    pub(super) stat_flushes: StatFlushes,
    /// When khugepaged was woken, and had a round at once, if it has slept since.
    pub(super) khugepaged_ran: Cell<Option<Nanos>>,
    /// Pageblocks by type, as they were at the first mark.
    types: Types,
    /// The CPU that the program runs on first.
    first_cpu: u16,
    /// What is to be free at the first mark, while that is to come.
    to_fill: RefCell<Vec<ZoneInfo>>,
}

impl Played {
    pub(super) fn new(sections: &Sections<'_>, program: &[Line]) -> Result<Self, FormatError> {
        let swap_disk = swap_disk(sections.need("scene")?);
        let zones = zones(sections.need("zoneinfo")?)?;
        let zones: Vec<ZoneInfo> = zones.into_iter().filter(|zone| zone.managed > 0).collect();
        let version = kernel_version(sections.word("uname"))?;
        let policy = Policy::linux(version);
        let knobs = Knobs::default();
        let _ = knobs.set(Knob::SwapRotational, u64::from(matches!(swap_disk.0, SwapDevice::Disk { .. })));
        for &(_, line) in &sections.need("settings")?.lines {
            // What the kernel computed from the machine was set by nobody.
            let said = line.split_once('=').filter(|(file, _)| *file != "/proc/sys/vm/min_free_kbytes");
            if let Some((file, value)) = said {
                set(file, value, |knob, value| drop(knobs.set(knob, value)));
            }
        }
        let topology = topology(sections, &zones)?;
        let mm = Mm::new(Bare::default(), topology, policy, knobs);
        let mm = Rc::new(mm.map_err(|error| FormatError::new(0, error))?);
        let nodes = mm.topology().nodes.len();
        let mut played = Self {
            daemons: Daemons::begin(&mm, version),
            mm,
            device: device(program),
            swap_disk,
            settings: RefCell::default(),
            kcompactd: Kcompactd::new(nodes),
            stat_flushes: StatFlushes::of(version),
            khugepaged_ran: Cell::default(),
            types: Types::of(sections),
            first_cpu: first_cpu(program),
            to_fill: RefCell::default(),
        };
        let touches = touches_before_first_mark(program);
        for zone in &zones {
            // What a program touches before its first mark is not to be missing twice: it is in whichever zone its kernel had it.
            let to_come = if touches { with_tables(zone.listed) } else { 0 };
            played.make_types(zone, to_come);
            played.fill(zone, to_come);
        }
        if touches {
            played.to_fill = RefCell::new(zones);
        }
        Ok(played)
    }

    /// The first mark is said: what its kernel had free is known of that moment.
    pub(super) fn fill_to_first_mark(&self) {
        self.to_fill.take().iter().for_each(|zone| self.fill(zone, 0));
    }

    /// `swapon disk`, which is refused a second time; says whether it was taken.
    pub(super) fn swap_on_disk(&self) -> bool {
        // The first page is the header's.
        let mut settings = self.settings.borrow_mut();
        let is_new = !std::mem::replace(&mut settings.has_disk, true);
        if is_new {
            let (_, size) = self.mm.spaces().swap_pages();
            let (device, bytes) = self.swap_disk;
            let pages = size.saturating_add(pages_of(bytes).saturating_sub(1));
            // Beside zram it would not be known what lies where.
            if settings.has_zram {
                self.mm.spaces().set_swap(pages);
            } else {
                self.mm.spaces().set_swap_on(device, pages);
            }
        }
        is_new
    }

    /// `swapon zram`, the same.
    pub(super) fn swap_on_zram(&self, bytes: u64) -> bool {
        let mut settings = self.settings.borrow_mut();
        let is_new = bytes > 0 && !std::mem::replace(&mut settings.has_zram, true);
        if is_new {
            let (used, size) = self.mm.spaces().swap_pages();
            // Beside a disk that is in use it would not be known what lies where.
            let device = if used == 0 && !settings.has_disk { self.device } else { SwapDevice::Synchronous };
            let pages = size.saturating_add(pages_of(bytes).saturating_sub(1));
            if device == SwapDevice::Synchronous {
                self.mm.spaces().set_swap(pages);
            } else {
                self.mm.spaces().set_swap_on(device, pages);
            }
        }
        is_new
    }

    /// The scene sets a file; says whether a knob stands for it.
    pub(super) fn set(&self, file: &str, value: &str) -> bool {
        set(file, value, |knob, value| drop(self.mm.set_knob(knob, value)))
    }

    /// Our zone for `zone`, and its free pages that are more than it had free and `to_come`.
    fn too_much(&self, zone: &ZoneInfo, to_come: u64) -> Option<(&mm::Zone<Bare>, u64)> {
        let kind = ZoneKind::from_name(&zone.name)?;
        let is_it = |other: &&mm::Zone<Bare>| other.kind() == kind && other.node() == Node(zone.node);
        let ours = self.mm.zones().iter().find(is_it)?;
        // What the program's CPU kept is as good as free; others' is not to be had.
        let own = zone.pagesets.iter().find(|pageset| pageset.cpu == self.first_cpu);
        let kept = own.map_or(0, |pageset| pageset.count.into());
        Some((ours, ours.free_pages_exact().saturating_sub(zone.free + kept + to_come)))
    }

    /// Makes pageblocks of the types that `zone` had.
    fn make_types(&self, zone: &ZoneInfo, to_come: u64) {
        if let Some((ours, most)) = self.too_much(zone, to_come) {
            self.types.make(&self.mm, ours, most);
        }
    }

    /// Takes what `zone` had not free, but for `to_come`.
    fn fill(&self, zone: &ZoneInfo, to_come: u64) {
        let Some((ours, _)) = self.too_much(zone, to_come) else { return };
        let request = Request {
            highest: ours.kind(),
            node: Some(Node(zone.node)),
            this_node: true,
            urgency: Urgency::Never,
            migratetype: MigrateType::Movable,
            ..Request::KERNEL
        };
        let is_left = || self.too_much(zone, to_come).is_some_and(|(_, pages)| pages > 0);
        while is_left() && self.mm.alloc(request).is_ok() {}
    }
}

/// So many pages of programs, and their page tables.
fn with_tables(pages: u64) -> u64 {
    pages + pages / 512
}

fn first_cpu(program: &[Line]) -> u16 {
    let cpu = program.iter().find_map(|line| match line.code {
        Code::Operation(What::Cpu(cpu)) => u16::try_from(cpu).ok(),
        _ => None,
    });
    cpu.unwrap_or(0)
}

fn touches_before_first_mark(program: &[Line]) -> bool {
    let mut before = program.iter().take_while(|line| !matches!(line.code, Code::Operation(What::Mark(_))));
    before.any(|line| matches!(line.code, Code::Operation(What::Accesses(_) | What::Zipf(_))))
}

/// What pages of `program`'s regions come to in compressed memory, by the noise in them: captured (mm_stat of zram, with 0, 8 and 16
/// lines of 64 bytes that do not compress). Of several kinds of regions, their mean.
fn device(program: &[Line]) -> SwapDevice {
    let regions = program.iter().filter_map(|line| match line.code {
        Code::Operation(What::Map { bytes, noise, .. }) => Some((bytes >> 12, noise)),
        _ => None,
    });
    let (mut pages, mut compressed) = (0u128, 0u128);
    for (count, noise) in regions {
        // What hardly gets smaller is kept as it is.
        let each = Some(49 + 65 * noise.min(64)).filter(|bytes| *bytes < 3264).unwrap_or(4096);
        pages += u128::from(count);
        compressed += u128::from(count) * u128::from(each);
    }
    let ratio_percent = (pages * 409_600).checked_div(compressed).map_or(100, |ratio| ratio.max(100) as u32);
    SwapDevice::Zram { ratio_percent }
}

/// The machine's second disk, and its bytes. What virtio has is a disk that says that it turns, all else memory.
fn swap_disk(section: &Section<'_>) -> (SwapDevice, u64) {
    let machine = section.lines.iter().find_map(|(_, line)| line.trim().strip_prefix("machine "));
    let words: Vec<&str> = machine.unwrap_or("").split_whitespace().collect();
    let said = |what: &str| words.windows(2).find(|pair| pair[0] == what).map(|pair| pair[1]);
    let device = match said("device") {
        Some("virtio") => SwapDevice::NEW_DISK,
        _ => SwapDevice::Synchronous,
    };
    (device, said("swap").map_or(512 << 20, size))
}

/// Bytes in whole pages.
fn pages_of(bytes: u64) -> u32 {
    u32::try_from(bytes >> 12).unwrap_or(u32::MAX)
}

/// The knob that stands for `file`, if there is one.
fn knob_of(file: &str) -> Option<&'static mm::knobs::KnobSpec> {
    let is_of = |stands_for: StandsFor| match stands_for {
        StandsFor::Sysctl(path) | StandsFor::Sysfs(path) => path == file,
        _ => false,
    };
    KNOBS.iter().find(|spec| is_of(spec.stands_for))
}

pub(super) fn has_knob(file: &str) -> bool {
    knob_of(file).is_some()
}

/// Gives the knob that stands for `file` and the value that is meant to `then`, if there is one.
fn set(file: &str, value: &str, then: impl FnOnce(Knob, u64)) -> bool {
    let Some(spec) = knob_of(file) else { return false };
    let chosen = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    let first = value.split_whitespace().next().unwrap_or("");
    // Of a word that begins with another, as the kernel reads them, the first letter counts at last.
    let letter = first.get(..1).unwrap_or("");
    let read = |text: &str| spec.knob.parse_one(text);
    let said = read(chosen.unwrap_or(value.trim())).or_else(|_| read(first)).or_else(|error| match letter {
        "y" | "n" => read(letter),
        _ => Err(error),
    });
    said.map(|value| then(spec.knob, value)).is_ok()
}

fn topology(sections: &Sections<'_>, zones: &[ZoneInfo]) -> Result<Topology, FormatError> {
    let mut distance = vec![];
    let mut cpus = vec![];
    for &(line, text) in &sections.need("topology")?.lines {
        if let Some((_, row)) = text.split_once("/distance=") {
            let row: Result<Vec<u32>, _> = row.split_whitespace().map(str::parse).collect();
            distance.push(row.map_err(|_| FormatError::new(line, "a distance is no number"))?);
        }
        if let Some((path, _)) = text.split_once("/cpulist=") {
            let node = path.rsplit("node").next().and_then(|node| node.parse().ok());
            let node = node.ok_or_else(|| FormatError::new(line, "a node is no number"))?;
            // One CPU a node, as all scenes have it.
            cpus.push(CpuSpec { node: Node(node), cache_slice: 0 });
        }
    }
    let mut nodes = vec![NodeSpec::default(); distance.len()];
    for zone in zones {
        let Some(kind) = ZoneKind::from_name(&zone.name) else { continue };
        let node = nodes.get_mut(usize::from(zone.node));
        let node = node.ok_or_else(|| FormatError::new(zone.line, "a zone of a node without distances"))?;
        node.zones.push(spec(zone, kind)?);
    }
    let topology = Topology { word: WordSize::of(&nodes), nodes, cpus, distance };
    topology.validate().map_err(|what| FormatError::new(0, what))?;
    Ok(topology)
}
