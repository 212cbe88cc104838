//! Makes mm for the machine of a trace: the topology as zoneinfo and QEMU's arguments say, and the sysctls that lead to
//! the marks that zoneinfo prints.

use mm::{Bare, Knob, Knobs, Mm, Policy, Topology, Tuning};

use super::super::beside::Beside;
use super::super::capture::kernel_version;
use super::super::lists::{PagesetId, Shape};
use super::super::sections::FormatError;

/// mm on the machine of a trace, and what each pageset was like.
pub(in super::super) struct Prepared {
    pub(in super::super) policy: Policy,
    pub(in super::super) topology: Topology,
    pub(in super::super) knobs: Knobs,
    pub(in super::super) shape: Shape,
    pub(in super::super) scale: u32,
}

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
    set(Knob::MinFreeKbytes, min_free_kbytes(beside))?;
    let shape =
        Shape { zones: beside.before.len(), cpus: topology.cpus.len(), orders: policy.rules().pcp_orders };
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

/// The smallest `vm.min_free_kbytes` from which all printed min marks follow, in KiB.
fn min_free_kbytes(beside: &Beside) -> u64 {
    let low_zones = || beside.before.iter().filter(|zone| zone.name != mm::ZoneKind::Movable.name());
    let lowmem: u64 = low_zones().map(|zone| u64::from(zone.managed)).sum();
    let pages =
        low_zones().map(|zone| (zone.min.saturating_mul(lowmem)).div_ceil(u64::from(zone.managed))).max();
    pages.unwrap_or(0).saturating_mul(4).clamp(1, i32::MAX as u64)
}
