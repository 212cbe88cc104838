//! Makes mm for the machine of a trace: the topology as zoneinfo and QEMU's arguments say, and the sysctls that lead to
//! the marks that zoneinfo prints.

use mm::policy::MovableMarksRule;
use mm::watermark::watermarks;
use mm::{Bare, Knob, Knobs, Mm, PageSizing, Policy, Topology, Tuning, ZoneKind};

use super::super::lists::{PagesetId, Shape};
use crate::conform::outcome::FileOutcome;
use crate::conform::read::beside::Beside;
use crate::conform::read::capture::kernel_version;
use crate::conform::read::sections::FormatError;
use crate::conform::read::zoneinfo::ZoneInfo;

/// mm on the machine of a trace, and what each pageset was like.
pub(in super::super) struct Prepared {
    pub(in super::super) policy: Policy,
    pub(in super::super) topology: Topology,
    pub(in super::super) knobs: Knobs,
    pub(in super::super) shape: Shape,
    pub(in super::super) scale: u32,
}

/// Zones times CPUs of the largest machine that is followed.
const MOST_PAGESETS: usize = 1 << 15;

/// `vm.pcp_batch_scale_max` of kernels that were built with the default.
const DEFAULT_SCALE: u32 = 5;

/// Reads the machine of a trace.
///
/// # Errors
/// If it could not exist, or is of a kernel without rules.
pub(in super::super) fn prepare(beside: &Beside) -> Result<Prepared, FormatError> {
    let version = kernel_version(&beside.release)?;
    let policy = match beside.scale {
        None => Policy::linux(version),
        Some(_) => Policy::parse(&format!("linux-{version}+pcp_batch_scale_max"))
            .map_err(|error| FormatError::new(0, error.to_string()))?,
    };
    let topology = beside.topology()?;
    let knobs = Knobs::default();
    let scale = beside.scale.unwrap_or(DEFAULT_SCALE);
    let set = |knob, value| knobs.set(knob, value).map_err(|error| FormatError::new(0, error.to_string()));
    set(Knob::PcpBatchScaleMax, u64::from(scale))?;
    set(Knob::MinFreeKbytes, min_free_kbytes(beside, &policy, &topology))?;
    let shape = Shape {
        zones: beside.before.len(),
        cpus: topology.cpus.len(),
        orders: policy.rules().lists.pcp_orders,
    };
    if shape.pagesets() > MOST_PAGESETS {
        let what =
            format!("{} pagesets are more than the {MOST_PAGESETS} that can be followed", shape.pagesets());
        return Err(FormatError::new(0, what));
    }
    Ok(Prepared { policy, topology, knobs, shape, scale })
}

impl Prepared {
    /// A memory manager for this machine.
    ///
    /// # Errors
    /// If mm refuses the topology.
    pub(in super::super) fn mm(&self) -> Result<Mm<Bare>, FormatError> {
        let knobs = Knobs::default();
        for knob in [Knob::PcpBatchScaleMax, Knob::MinFreeKbytes] {
            knobs.set(knob, self.knobs.get(knob)).map_err(|error| FormatError::new(0, error.to_string()))?;
        }
        Mm::new(Bare::default(), self.topology.clone(), self.policy.clone(), knobs)
            .map_err(|what| FormatError::new(0, what))
    }

    /// Each pageset's sizes as mm computes them, with the count and `high` that zoneinfo prints.
    pub(in super::super) fn sizes(&self, mm: &Mm<Bare>, beside: &Beside) -> Vec<Tuning> {
        let of_pageset = |index: usize| {
            let pageset = PagesetId(index as u32);
            let (zone, cpu) = (self.shape.zone(pageset), self.shape.cpu(pageset));
            let computed = mm.zones()[zone].pageset_tuning(mm.machine(), mm::Cpu(cpu));
            let printed = beside.before[zone].pagesets.iter().find(|set| set.cpu == cpu);
            match printed {
                Some(set) => Tuning { count: set.count, high: set.high, ..computed },
                None => computed,
            }
        };
        (0..self.shape.pagesets()).map(of_pageset).collect()
    }
}

/// Compares the sizes of each pageset that zoneinfo prints with mm's.
pub(in super::super) fn compare_sizes(mm: &Mm<Bare>, beside: &Beside, outcome: &mut FileOutcome) {
    for (zone, of_mm) in beside.before.iter().zip(mm.zones()) {
        for set in &zone.pagesets {
            let sizing = of_mm.pageset_sizing(mm.machine(), mm::Cpu(set.cpu));
            let at = |what| move || format!("node {} zone {} cpu {} {what}", zone.node, zone.name, set.cpu);
            outcome.compare(at("batch"), set.batch, sizing.batch);
            for (what, kernel, freehold) in
                [("high_min", set.high_min, sizing.high_min), ("high_max", set.high_max, sizing.high_max)]
            {
                if let Some(kernel) = kernel {
                    outcome.compare(at(what), kernel, freehold);
                }
            }
        }
    }
}

/// The `vm.min_free_kbytes` from which most of what zoneinfo prints follows, in KiB. A zone whose marks are raised for the
/// moment does not agree with the others.
fn min_free_kbytes(beside: &Beside, policy: &Policy, topology: &Topology) -> u64 {
    let all_share = policy.rules().zone.movable_marks == MovableMarksRule::Shared;
    let shares = |zone: &&ZoneInfo| {
        zone.name != ZoneKind::HighMem.name() && (all_share || zone.name != ZoneKind::Movable.name())
    };
    let low_zones = || beside.before.iter().filter(shares);
    let lowmem: u64 = low_zones().map(|zone| u64::from(zone.managed)).sum();
    let smallest = |zone: &ZoneInfo| {
        let pages =
            zone.min.saturating_sub(zone.boost).saturating_mul(lowmem).div_ceil(u64::from(zone.managed));
        pages.saturating_mul(4).clamp(1, i32::MAX as u64)
    };
    let agreeing = |kbytes: u64| {
        let knobs = Knobs::default();
        let set = knobs.set(Knob::MinFreeKbytes, kbytes).is_ok();
        let agrees = |zone: &&ZoneInfo| set && agrees(zone, policy, topology, &knobs);
        low_zones().filter(agrees).count()
    };
    low_zones().map(smallest).max_by_key(|&kbytes| (agreeing(kbytes), kbytes)).unwrap_or(1)
}

/// Whether a zone's pagesets are as the marks make them, or where a kernel does not print that, its min mark.
fn agrees(zone: &ZoneInfo, policy: &Policy, topology: &Topology, knobs: &Knobs) -> bool {
    let Some(kind) = ZoneKind::from_name(&zone.name) else { return false };
    let marks = watermarks(topology, knobs, policy.rules(), kind, zone.managed);
    let cpus = topology.cpus_of(mm::Node(zone.node));
    let cpus = if cpus == 0 { topology.cpus.len() } else { cpus };
    let sizing = PageSizing::compute(policy.rules(), knobs, zone.managed, marks.low, cpus as u32);
    match zone.pagesets.first().and_then(|set| set.high_min) {
        Some(high_min) => high_min == sizing.high_min,
        None => zone.min.saturating_sub(zone.boost) == u64::from(marks.min),
    }
}
