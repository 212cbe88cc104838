//! Which CPUs the tasks run on: spread over nodes first, then over last-level caches, cores, and threads of a core, as a
//! scheduler places new tasks on an idle machine.

use std::fmt;

use mm::Cpu;
use serde::Deserialize;
use sim::Profile;
use sim::profile::CpuPosition;

/// `cpus` (or the profile's own, if empty) in the order in which tasks are placed on them.
pub(crate) fn spread(profile: &Profile, cpus: &[Cpu]) -> Vec<Cpu> {
    let places = profile.shape().places();
    let allowed = if cpus.is_empty() { profile.default_cpus() } else { cpus.to_vec() };
    // Rank within the next larger unit, so that a unit gets its second task only when all its siblings have a first.
    let rank = |cpu: Cpu, same: &dyn Fn(&sim::profile::CpuPosition, &sim::profile::CpuPosition) -> bool| {
        let mine = &places[usize::from(cpu.0)];
        allowed.iter().filter(|other| other.0 < cpu.0 && same(&places[usize::from(other.0)], mine)).count()
    };
    let mut order: Vec<_> = allowed
        .iter()
        .map(|&cpu| {
            let in_core = rank(cpu, &|a, b| a.core == b.core);
            let in_llc = rank(cpu, &|a, b| a.llc == b.llc);
            let in_node = rank(cpu, &|a, b| a.node == b.node);
            (in_core, in_llc, in_node, cpu)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(.., cpu)| cpu).collect()
}

/// Where the two tasks of a pair run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pairing {
    /// Where the scheduler puts them.
    #[default]
    Free,
    /// Both on one CPU.
    Same,
    /// On two threads of one core.
    Smt,
    /// On two cores under one last-level cache.
    Llc,
    /// On two cores of one node, under different last-level caches if the node has several.
    Node,
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "not pinned",
            Self::Same => "on one CPU",
            Self::Smt => "on two threads of a core",
            Self::Llc => "on two cores of a last-level cache",
            Self::Node => "on two cores of a node",
        })
    }
}

/// Pairs of `cpus` that are to each other as `pairing` says, as many as there are without using a CPU twice, in the order
/// of `cpus`. None at all where tasks are not pinned.
///
/// # Errors
/// There are no two such CPUs.
pub(crate) fn pairs(places: &[CpuPosition], cpus: &[Cpu], pairing: Pairing) -> Result<Vec<[Cpu; 2]>, String> {
    match pairing {
        Pairing::Free => return Ok(vec![]),
        Pairing::Same => return Ok(cpus.iter().map(|&cpu| [cpu, cpu]).collect()),
        Pairing::Smt | Pairing::Llc | Pairing::Node => {}
    }
    let place = |cpu: Cpu| &places[usize::from(cpu.0)];
    let several_llcs = |a: &CpuPosition| places.iter().any(|b| b.node == a.node && b.llc != a.llc);
    let fit = |a: &CpuPosition, b: &CpuPosition| match pairing {
        Pairing::Free | Pairing::Same => false,
        Pairing::Smt => a.core == b.core,
        Pairing::Llc => a.core != b.core && a.llc == b.llc,
        Pairing::Node => a.core != b.core && a.node == b.node && (a.llc != b.llc || !several_llcs(a)),
    };
    let (mut left, mut pairs) = (cpus.to_vec(), vec![]);
    while !left.is_empty() {
        let first = left.remove(0);
        if let Some(at) = left.iter().position(|&cpu| fit(place(first), place(cpu))) {
            pairs.push([first, left.remove(at)]);
        }
    }
    if pairs.is_empty() { Err(format!("there are no two CPUs to run {pairing}")) } else { Ok(pairs) }
}

/// Why a list of CPUs cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuListError {
    /// Not of the form `0-3,8`.
    Form(String),
    /// The machine has no such CPU.
    NoCpu {
        /// The CPU.
        cpu: u32,
        /// How many the machine has.
        cpus: u32,
    },
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(f, "'{text}' is not a list of CPUs such as 0-3,8"),
            Self::NoCpu { cpu, cpus } => {
                write!(f, "there is no CPU {cpu}: the machine has 0 to {}", cpus - 1)
            }
        }
    }
}

impl std::error::Error for CpuListError {}

/// Reads a list as `/sys` prints them, `0-3,8`, for a machine with `cpus` CPUs.
///
/// # Errors
/// Another form, an empty list, or a CPU that the machine does not have.
pub fn parse_cpu_list(text: &str, cpus: u32) -> Result<Vec<Cpu>, CpuListError> {
    let form = || CpuListError::Form(text.to_owned());
    let mut list = vec![];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| form())?;
        let last: u32 = last.trim().parse().map_err(|_| form())?;
        if last < first {
            return Err(form());
        }
        if last >= cpus {
            return Err(CpuListError::NoCpu { cpu: last, cpus });
        }
        list.extend((first..=last).map(|cpu| Cpu(cpu as u16)));
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_as_near_as_asked_and_use_each_cpu_once() {
        let profile = Profile::load("epyc-7w83").expect("a profile");
        let (places, cpus) = (profile.shape().places(), spread(&profile, &[]));
        let of = |pairing| pairs(&places, &cpus, pairing).expect("such pairs");
        let place = |cpu: Cpu| &places[usize::from(cpu.0)];
        for pairing in [Pairing::Smt, Pairing::Llc, Pairing::Node] {
            let pairs = of(pairing);
            let mut used: Vec<Cpu> = pairs.iter().flatten().copied().collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), 2 * pairs.len(), "{pairing}");
            assert!(pairs.len() * 2 > cpus.len() * 9 / 10, "{pairing} leaves CPUs over");
        }
        assert!(of(Pairing::Smt).iter().all(|[a, b]| place(*a).core == place(*b).core));
        assert!(
            of(Pairing::Llc)
                .iter()
                .all(|[a, b]| { place(*a).core != place(*b).core && place(*a).llc == place(*b).llc })
        );
        assert!(
            of(Pairing::Node)
                .iter()
                .all(|[a, b]| { place(*a).llc != place(*b).llc && place(*a).node == place(*b).node })
        );
        assert!(of(Pairing::Same).len() == cpus.len() && of(Pairing::Same).iter().all(|[a, b]| a == b));
        assert!(of(Pairing::Free).is_empty());
    }

    #[test]
    fn a_machine_without_such_a_pair_says_so() {
        let profile = Profile::load("kvm-genoa-2c").expect("a profile");
        let said = pairs(&profile.shape().places(), &spread(&profile, &[]), Pairing::Smt);
        assert_eq!(
            said.expect_err("one thread a core"),
            "there are no two CPUs to run on two threads of a core"
        );
    }
}
