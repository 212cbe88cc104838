//! The trade-off of docs/published.md#gorman-2014: devices that reach only 32 bits of address, beside a program that
//! fills memory. Requests of the devices' drivers are the group `devices`, the program is `fill`.
//!
//! The program starts on a node, takes anonymous memory and reads a file as it goes, and then works: it accesses its memory at
//! random, gives some back and takes it anew, and reads and writes on in the file. Where its memory lies is what zonelist order decides; what of it lies in
//! DMA32 is what drivers lack. An operation is one of its rounds, so that their rate says what the order costs the
//! program. Counters `device_requests` and `device_failed` are requests of the drivers; one that was stalled is a span
//! `devices/direct_reclaim`.
//!
//! What the drivers ask for is in `devices`. Left out: what their interrupts cost, bounce buffers (swiotlb), which drivers
//! fall back to that can.

mod devices;
mod fill;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use mm::Cpu;
use mm::policy::Mechanism;
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

use devices::Device;
use fill::Fill;

/// Names of the groups, by number.
pub(super) const GROUPS: &[&str] = &["devices", "fill"];

/// Parameters of the devices and of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DmaDevices {
    /// The node that the program starts on.
    #[serde(default)]
    pub node: u16,
    /// Anonymous memory that it takes, MiB, from 1.
    pub anon_mib: u32,
    /// The file that it reads, MiB, from 1.
    pub file_mib: u32,
    /// Of a hundred pieces of the file that it comes upon, how many it writes instead.
    #[serde(default = "number::<10>")]
    pub write_percent: u32,
    /// What the disk moves, MB a second, from 1.
    /// An estimate: a striped set of several hard disks.
    #[serde(default = "number::<800>")]
    pub disk_mb_per_second: u32,
    /// MiB that AGP has, taken at boot; 0 for none.
    /// The usual aperture.
    #[serde(default = "number::<64>")]
    pub agp_mib: u32,
    /// 32-bit graphics cards.
    #[serde(default = "number::<1>")]
    pub drm: u32,
    /// TV cards.
    #[serde(default = "number::<2>")]
    pub tv: u32,
    /// B43 wireless cards.
    #[serde(default = "number::<1>")]
    pub b43: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "dma-devices",
    tests: &[Mechanism::Zonelists],
    brings: Brings::FILES,
    groups: GROUPS,
    read: WorkloadKind::read::<DmaDevices>,
    smallest: &[
        "anon_mib = 1\nfile_mib = 1\nwrite_percent = 0\nagp_mib = 0\ndrm = 0\ntv = 0\nb43 = 0\ndisk_mb_per_second = 1\n",
    ],
    largest: &[],
};

impl Workload for DmaDevices {
    fn title(&self) -> String {
        format!(
            "32-bit devices (AGP {} MiB, {} DRM, {} TV, {} B43) beside {} + {} MiB from node {}",
            self.agp_mib, self.drm, self.tv, self.b43, self.anon_mib, self.file_mib, self.node
        )
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        let part = |mib: u32| (mib / by).max(1);
        let agp_mib = if self.agp_mib == 0 { 0 } else { part(self.agp_mib) };
        Some(Arc::new(Self {
            anon_mib: part(self.anon_mib),
            file_mib: part(self.file_mib),
            agp_mib,
            ..*self
        }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("anon_mib", self.anon_mib.into(), 1..=1 << 22)?;
        within("file_mib", self.file_mib.into(), 1..=1 << 22)?;
        within("write_percent", self.write_percent.into(), 0..=100)?;
        within("disk_mb_per_second", self.disk_mb_per_second.into(), 1..=1 << 20)?;
        within("agp_mib", self.agp_mib.into(), 0..=4096)?;
        for (name, count) in [("drm", self.drm), ("tv", self.tv), ("b43", self.b43)] {
            within(name, count.into(), 0..=1000)?;
        }
        let cpu = self.cpu(stage)?;
        stage.disk.set_speed(self.disk_mb_per_second);
        stage.tasks.set(1);
        for (number, device) in (0..).zip(self.devices()) {
            let owned = Rc::clone(stage);
            let random = Random::new(stage.machine());
            let task = TaskSpec::new(device.name()).on(stage.cpu(number)).in_group(0);
            sim.spawn(task, move || device.run(&owned, random));
        }
        let fill = Fill { anon: self.anon_mib << 8, file: self.file_mib << 8, writes: self.write_percent };
        let owned = Rc::clone(stage);
        let random = Random::new(stage.machine());
        // Drivers are there from boot on.
        let task = TaskSpec::new("fill").on(cpu).at(devices::BOOT).in_group(1);
        sim.spawn(task, move || fill.run(&owned, random));
        Ok(())
    }
}

impl DmaDevices {
    fn devices(&self) -> impl Iterator<Item = Device> {
        let several = |device, count: u32| std::iter::repeat_n(device, count as usize);
        let agp = several(Device::Agp { mib: self.agp_mib }, u32::from(self.agp_mib > 0));
        agp.chain(several(Device::Drm, self.drm))
            .chain(several(Device::Tv, self.tv))
            .chain(several(Device::B43, self.b43))
    }

    /// The last of the node's CPUs, so that drivers' tasks, which begin with the first ones, leave it alone.
    fn cpu(&self, stage: &Stage) -> Result<Cpu, String> {
        let of_node = |cpu: &&Cpu| stage.places[usize::from(cpu.0)].node == self.node;
        let cpu = stage.cpus.iter().rev().find(of_node).copied();
        cpu.ok_or_else(|| format!("workload: node is {}, but it has no CPU to run on", self.node))
    }
}
