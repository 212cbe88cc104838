//! Which CPUs the tasks run on: spread over nodes first, then over last-level caches, cores, and threads of a core, as a
//! scheduler places new tasks on an idle machine.

use std::fmt;

use mm::Cpu;
use sim::Profile;

/// `cpus` (or the profile's own, if empty) in the order in which tasks are placed on them.
pub(crate) fn spread(profile: &Profile, cpus: &[Cpu]) -> Vec<Cpu> {
    let places = profile.shape().places();
    let allowed = if cpus.is_empty() { profile.default_cpus() } else { cpus.to_vec() };
    // Rank within the next larger unit, so that a unit gets its second task only when all its siblings have a first.
    let rank = |cpu: Cpu, same: &dyn Fn(&sim::profile::Place, &sim::profile::Place) -> bool| {
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
