//! A capture: what a stock kernel says of its machine and of the parameters that it computed. From this the topology and
//! the sysctls are taken; what it says of parameters is only ever compared with.

use std::collections::{BTreeMap, BTreeSet};

use mm::{
    CpuSpec, Knob, Knobs, Node, NodeSpec, Pfn, Topology, WordSize, ZoneKind, ZoneSpec, policy,
    version::Version,
};

use super::sections::{FormatError, Section, Sections, clip, number, number_set};
use super::slab_cache::{self, SlabCacheInfo};
use super::zoneinfo::{self, ZoneInfo};

/// A capture of a kernel's parameters.
#[derive(Clone, Debug)]
pub struct Capture {
    /// What `uname -r` said.
    pub release: String,
    /// For each node, its CPUs and its distances to all nodes.
    pub nodes: Vec<CaptureNode>,
    /// Bytes of the last-level cache, and the CPUs that share it.
    pub last_cache: Option<(u64, u32)>,
    /// Everything under /proc/sys/vm.
    pub sysctls: BTreeMap<String, String>,
    /// The zones, empty ones too.
    pub zones: Vec<ZoneInfo>,
    /// What the kernel's log says of each node's fallback order.
    pub fallback: Vec<(u16, Vec<u16>)>,
    /// CPUs that are present, whether online or not.
    pub present_cpus: u32,
    /// The slab caches.
    pub caches: Vec<SlabCacheInfo>,
}

/// A node of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureNode {
    /// Its CPUs.
    pub cpus: Vec<u16>,
    /// Distance to each node.
    pub distance: Vec<u32>,
}

impl Capture {
    /// Reads a capture.
    ///
    /// # Errors
    /// The line that cannot be read, or the section that is missing.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let sections = Sections::of(text);
        let zones = zoneinfo::zones(sections.need("zoneinfo")?)?;
        let nodes = nodes(sections.need("cpus")?)?;
        Ok(Self {
            release: sections.word("uname").to_string(),
            present_cpus: present_cpus(&sections, &nodes)?,
            nodes,
            last_cache: sections.get("cache").map(last_cache).transpose()?.flatten(),
            sysctls: sysctls(sections.need("vm")?),
            zones,
            fallback: sections.get("dmesg").map(fallback).transpose()?.unwrap_or_default(),
            caches: sections.get("slab").map(slab_cache::caches).transpose()?.unwrap_or_default(),
        })
    }

    /// The kernel's version.
    ///
    /// # Errors
    /// If the release does not begin with one for which there are rules.
    pub fn version(&self) -> Result<Version, FormatError> {
        kernel_version(&self.release)
    }

    /// The machine, as mm is told of it.
    ///
    /// # Errors
    /// If the capture describes no machine that could exist.
    pub fn topology(&self) -> Result<Topology, FormatError> {
        let cache_slice = self.last_cache.map_or(0, |(bytes, sharers)| bytes / u64::from(sharers.max(1)));
        // Only CPUs that are online have pagesets and count; mm knows no others, so they are numbered anew.
        let mut cpus: Vec<(u16, u16)> = vec![];
        for (number, node) in self.nodes.iter().enumerate() {
            cpus.extend(node.cpus.iter().map(|&cpu| (cpu, number as u16)));
        }
        cpus.sort_unstable();
        // With emulated nodes a CPU is on several lists.
        cpus.dedup_by_key(|&mut (cpu, _)| cpu);
        let mut topology = Topology {
            word: WordSize::default(),
            nodes: vec![NodeSpec::default(); self.nodes.len()],
            cpus: cpus.iter().map(|&(_, node)| CpuSpec { node: Node(node), cache_slice }).collect(),
            distance: self.nodes.iter().map(|node| node.distance.clone()).collect(),
        };
        for zone in self.zones.iter().filter(|zone| zone.managed > 0) {
            let Some(kind) = ZoneKind::from_name(&zone.name) else { continue };
            let node = topology.nodes.get_mut(usize::from(zone.node));
            let node = node
                .ok_or_else(|| FormatError::new(zone.line, format!("node {} has no CPU list", zone.node)))?;
            node.zones.push(spec(zone, kind)?);
        }
        topology.word = WordSize::of(&topology.nodes);
        topology.validate().map_err(|what| FormatError::new(0, what))?;
        Ok(topology)
    }

    /// The sysctls that are inputs of what is compared.
    ///
    /// # Errors
    /// If one has a value that no kernel would take.
    pub fn knobs(&self) -> Result<Knobs, FormatError> {
        let knobs = Knobs::default();
        let named = [
            (Knob::MinFreeKbytes, "min_free_kbytes"),
            (Knob::WatermarkScaleFactor, "watermark_scale_factor"),
            (Knob::WatermarkBoostFactor, "watermark_boost_factor"),
            (Knob::PercpuPagelistHighFraction, "percpu_pagelist_high_fraction"),
            (Knob::PcpBatchScaleMax, "pcp_batch_scale_max"),
            (Knob::StatInterval, "stat_interval"),
        ];
        for (knob, name) in named {
            if let Some(value) = self.sysctls.get(name) {
                set(&knobs, knob, name, value)?;
            }
        }
        self.set_lowmem_reserve(&knobs)?;
        Ok(knobs)
    }

    /// `lowmem_reserve_ratio` has a number for each zone kind that the kernel was built with, lowest first.
    fn set_lowmem_reserve(&self, knobs: &Knobs) -> Result<(), FormatError> {
        let Some(ratios) = self.sysctls.get("lowmem_reserve_ratio") else { return Ok(()) };
        for (ratio, kind) in ratios.split_whitespace().zip(self.kinds()) {
            let knob = match kind {
                Some(ZoneKind::Dma) => Knob::LowmemReserveDma,
                Some(ZoneKind::Dma32) => Knob::LowmemReserveDma32,
                Some(ZoneKind::Normal) => Knob::LowmemReserveNormal,
                Some(ZoneKind::HighMem | ZoneKind::Movable) | None => continue,
            };
            set(knobs, knob, "lowmem_reserve_ratio", ratio)?;
        }
        Ok(())
    }

    /// The kinds of zone that the kernel was built with, lowest first; `None` for those that mm leaves out (Device).
    pub(in crate::conform) fn kinds(&self) -> Vec<Option<ZoneKind>> {
        let first = self.zones.first().map_or(0, |zone| zone.node);
        let of_first = self.zones.iter().filter(|zone| zone.node == first);
        of_first.map(|zone| ZoneKind::from_name(&zone.name)).collect()
    }
}

/// The version of a kernel release, if mm has rules for it.
pub(crate) fn kernel_version(release: &str) -> Result<Version, FormatError> {
    let name = clip(release);
    let version = Version::parse(release)
        .ok_or_else(|| FormatError::new(0, format!("'{name}' (section @@uname) is no kernel release")))?;
    policy::check_version(version)
        .map_err(|why| FormatError::new(0, format!("kernel {name} has no policy: {why}")))?;
    Ok(version)
}

fn set(knobs: &Knobs, knob: Knob, name: &str, value: &str) -> Result<(), FormatError> {
    let value = number(0, name, value)?;
    knobs.set(knob, value).map_err(|error| FormatError::new(0, error.to_string()))
}

pub(in crate::conform) fn spec(zone: &ZoneInfo, kind: ZoneKind) -> Result<ZoneSpec, FormatError> {
    let missing = || FormatError::new(zone.line, format!("zone {} has no start_pfn", zone.name));
    Ok(ZoneSpec {
        kind,
        start: Pfn(zone.start_pfn.ok_or_else(missing)?),
        spanned: zone.spanned,
        present: zone.present,
        managed: zone.managed,
    })
}

/// `node0 cpulist=0-3 distance=10 21`
fn nodes(section: &Section<'_>) -> Result<Vec<CaptureNode>, FormatError> {
    let mut nodes = vec![];
    for &(line, text) in &section.lines {
        let Some(rest) = text.strip_prefix("node") else { continue };
        let (node, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if number::<usize>(line, "the node", node)? != nodes.len() {
            return Err(FormatError::new(line, "nodes must be numbered from 0 without gaps"));
        }
        let (cpus, distance) = rest.split_once("distance=").unwrap_or((rest, ""));
        let cpus = cpus.trim().strip_prefix("cpulist=").unwrap_or_default();
        let distance = distance.split_whitespace().map(|text| number(line, "a distance", text));
        nodes.push(CaptureNode {
            cpus: number_set(line, "a CPU", cpus)?,
            distance: distance.collect::<Result<_, _>>()?,
        });
    }
    Ok(nodes)
}

/// What QEMU was told, `# qemu: -smp 8,sockets=2,cores=4 …`, or else the CPUs that are online.
fn present_cpus(sections: &Sections<'_>, nodes: &[CaptureNode]) -> Result<u32, FormatError> {
    const HEAD: &str = "# qemu: -smp ";
    let mut lines = sections.get("end").into_iter().flat_map(|section| &section.lines);
    let told = lines.find_map(|&(line, text)| Some((line, text.strip_prefix(HEAD)?)));
    let Some((line, told)) = told else {
        let online: BTreeSet<u16> = nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect();
        return Ok(online.len() as u32);
    };
    let digits = told.find(|c: char| !c.is_ascii_digit()).unwrap_or(told.len());
    number(line, "the number of CPUs", &told[..digits])
}

/// `3 Unified 16384K shared=0-3`: the largest level counts.
fn last_cache(section: &Section<'_>) -> Result<Option<(u64, u32)>, FormatError> {
    let mut last: Option<(u32, u64, u32)> = None;
    for &(line, text) in &section.lines {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [level, kind, size, shared] = words[..] else { continue };
        let level = number(line, "a cache level", level)?;
        if kind == "Instruction" || last.is_some_and(|(known, ..)| known >= level) {
            continue;
        }
        let kib: u64 = number(line, "a cache size", size.strip_suffix('K').unwrap_or(size))?;
        let sharers = number_set(line, "a CPU", shared.strip_prefix("shared=").unwrap_or(shared))?;
        last = Some((level, kib.saturating_mul(1024), sharers.len() as u32));
    }
    Ok(last.map(|(_, bytes, sharers)| (bytes, sharers)))
}

fn sysctls(section: &Section<'_>) -> BTreeMap<String, String> {
    let pairs = section.lines.iter().filter_map(|(_, text)| text.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect()
}

/// `[    0.125075] Fallback order for Node 0: 0 1`
fn fallback(section: &Section<'_>) -> Result<Vec<(u16, Vec<u16>)>, FormatError> {
    const HEAD: &str = "Fallback order for Node ";
    let mut orders = vec![];
    for &(line, text) in &section.lines {
        let Some(at) = text.find(HEAD) else { continue };
        let (node, order) = text[at + HEAD.len()..].split_once(':').unwrap_or(("", ""));
        let order = order.split_whitespace().map(|node| number(line, "a node", node));
        orders.push((number(line, "the node", node)?, order.collect::<Result<_, _>>()?));
    }
    Ok(orders)
}
