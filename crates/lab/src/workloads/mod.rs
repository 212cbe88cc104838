//! Workloads of experiments: what programs ask of memory management, written down as tasks of the simulated machine. Each
//! file says what the original does and what was left out. A recording is the other way to a workload
//! ([`crate::recorded`]).
//!
//! To add one: a file here with its parameters, their [`Workload`] and their `WorkloadKind`, and its line in `KINDS`.

mod alloc_loop;
mod colocated;
mod dma_devices;
#[cfg(test)]
mod extremes_tests;
mod fragment;
mod hot_pages;
mod kernel_memory;
mod mapping;
mod page_fault;
mod proactive;
mod process_churn;
mod producer_consumer;
mod python_loop;
mod script;
mod slab;
mod specjbb;
mod stream;
#[cfg(test)]
mod tests;
mod thp_fault;
mod thpscale;
pub(crate) mod workload;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

pub use page_fault::{FaultKind, PageFault};
#[cfg(test)]
pub(crate) use python_loop::PythonLoop;
use workload::WorkloadKind;
pub use workload::{Sharing, Workload, WorkloadSpec};

/// Every kind, in the order in which messages list them.
const KINDS: &[&[WorkloadKind]] = &[
    &[python_loop::KIND, page_fault::KIND, alloc_loop::KIND, producer_consumer::KIND, process_churn::KIND],
    &[colocated::KIND],
    &slab::KINDS,
    &[stream::KIND, specjbb::KIND, dma_devices::KIND, kernel_memory::KIND],
    &[thpscale::KIND, proactive::KIND, thp_fault::KIND, hot_pages::KIND],
    &[script::KIND],
];

impl<'de> Deserialize<'de> for WorkloadSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut parameters = Table::deserialize(from)?;
        let name = match parameters.remove("kind") {
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(D::Error::custom(format!("kind is {other}; it is the name of a workload")));
            }
            None => return Err(D::Error::missing_field("kind")),
        };
        let kinds = || KINDS.iter().copied().flatten();
        let Some(kind) = kinds().find(|kind| kind.name == name) else {
            let known: Vec<String> = kinds().map(|kind| format!("`{}`", kind.name)).collect();
            let problem = format!("unknown variant `{name}`, expected one of {}", known.join(", "));
            return Err(D::Error::custom(problem));
        };
        let workload = (kind.read)(parameters).map_err(|error| D::Error::custom(error.message()))?;
        Ok(Self { kind, workload })
    }
}
