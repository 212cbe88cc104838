//! Two CPUs at a time, by how near they are: rounds over the whole time of the probe, for hypervisors move virtual CPUs
//! about.

use super::ProbeRun;
use crate::probe::hardware::{CpuPlace, HostCloseness};
use crate::probe::pair::CpuPair;
use crate::probe::samples::Samples;
use crate::probe::{Result, pair};

/// CPU pairs of each closeness that are measured, at most.
const PAIRS: usize = 4;

/// Keys by closeness.
const TRANSFER: [&str; 4] =
    ["transfer.smt_ns", "transfer.same_llc_ns", "transfer.same_socket_ns", "transfer.cross_socket_ns"];
const HANDOVER: [&str; 4] =
    ["handover.smt_ns", "handover.same_llc_ns", "handover.same_socket_ns", "handover.cross_socket_ns"];

/// What was measured of the pairs of one closeness, round by round; or what went wrong.
#[derive(Default)]
pub(super) struct PairFigures {
    transfers: Vec<Samples>,
    handovers: Vec<Samples>,
    wrong: Option<String>,
}

impl ProbeRun<'_> {
    /// A round of measurements of two CPUs.
    pub(super) fn pairs(&mut self) {
        let lock = self.median("cpu.lock_ns").unwrap_or(0.0);
        for (class, closeness) in HostCloseness::ALL.into_iter().enumerate() {
            let pairs = self.pairs_of(closeness);
            if pairs.is_empty() {
                continue;
            }
            let round = || {
                let transfer = over(&pairs, pair::transfer)?;
                let hold = (transfer.median() * 8.0).max(300.0);
                let handover = over(&pairs, |pair| pair::handover(pair, hold, lock))?;
                Ok((transfer, handover.map(|ns| ns.max(0.1))))
            };
            let figures = &mut self.pairs[class];
            match round() {
                Ok((transfer, handover)) => {
                    figures.transfers.push(transfer);
                    figures.handovers.push(handover);
                }
                Err(why) => figures.wrong = Some(why),
            }
        }
    }

    pub(super) fn finish_pairs(&mut self) {
        for (class, closeness) in HostCloseness::ALL.into_iter().enumerate() {
            let PairFigures { transfers, handovers, wrong } = std::mem::take(&mut self.pairs[class]);
            if transfers.is_empty() {
                let why = wrong.unwrap_or_else(|| no_such_pair(closeness).into());
                self.lack(TRANSFER[class], why.clone());
                self.lack(HANDOVER[class], why);
                continue;
            }
            self.probe.notes.extend(wandering(&transfers, closeness));
            let pairs: Vec<String> =
                self.pairs_of(closeness).iter().map(|pair| format!("{}-{}", pair.one, pair.other)).collect();
            let pairs = pairs.join(", ");
            let how = format!("half of a round trip by compare-and-exchange between CPUs {pairs}");
            self.add(TRANSFER[class], &Samples::joined(transfers), how);
            let how = format!(
                "a ticket lock held in turn by CPUs {pairs}, the holding taken out: giving back takes the line from the \
                 waiter, who then fetches it"
            );
            self.add(HANDOVER[class], &Samples::joined(handovers), how);
        }
    }

    /// Pairs of CPUs that are so close, spread over all that there are.
    fn pairs_of(&self, closeness: HostCloseness) -> Vec<CpuPair> {
        let so_close = |one: &CpuPlace, other: &CpuPlace| one.closeness(other) == closeness;
        let mut pairs = vec![];
        for (index, one) in self.cpus.iter().enumerate() {
            let later = &self.cpus[index + 1..];
            pairs.extend(
                later
                    .iter()
                    .filter(|other| so_close(one, other))
                    .map(|other| CpuPair { one: one.number, other: other.number }),
            );
        }
        let step = pairs.len().div_ceil(PAIRS).max(1);
        pairs.into_iter().step_by(step).collect()
    }
}

/// A note if one round differs much from another, or CPUs that should be near are far.
fn wandering(rounds: &[Samples], closeness: HostCloseness) -> Option<String> {
    /// Within a socket no two pairs of CPUs that share a cache are this far apart; its caches are.
    const FAR_NS: f64 = 90.0;
    let medians = Samples::of(rounds.iter().map(Samples::median).collect()).spread();
    let what = match closeness {
        HostCloseness::Smt => "threads of one core",
        HostCloseness::SameLlc => "cores under one last-level cache",
        HostCloseness::SameSocket => "cores of one socket",
        HostCloseness::CrossSocket => "cores of two sockets",
    };
    if medians.max > 1.8 * medians.min {
        return Some(format!(
            "a line's way between {what} took {:.0} ns at one time and {:.0} ns at another: a hypervisor that moves \
             virtual CPUs does that; probe again near to what is to be compared",
            medians.min, medians.max
        ));
    }
    let far = closeness <= HostCloseness::SameLlc && medians.median > FAR_NS;
    far.then(|| {
        format!(
            "a line's way between {what}, as sysfs has it, took {:.0} ns, too long for that: the virtual CPUs seem to be \
             elsewhere than the hypervisor says",
            medians.median
        )
    })
}

/// All samples over `pairs`.
fn over(pairs: &[CpuPair], measure: impl Fn(CpuPair) -> Result<Samples>) -> Result<Samples> {
    let medians: Result<Vec<Samples>> = pairs.iter().map(|&pair| measure(pair)).collect();
    medians.map(Samples::joined)
}

fn no_such_pair(closeness: HostCloseness) -> &'static str {
    match closeness {
        HostCloseness::Smt => "no two of the CPUs are threads of one core, as sysfs says",
        HostCloseness::SameLlc => "no two of the CPUs are cores under one last-level cache, as sysfs says",
        HostCloseness::SameSocket => {
            "no two of the CPUs are on one socket under different last-level caches, as sysfs says"
        }
        HostCloseness::CrossSocket => "no two of the CPUs are on different sockets, as sysfs says",
    }
}
