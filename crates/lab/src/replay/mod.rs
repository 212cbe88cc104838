//! Replay: a workload runs on a simulated machine, under a policy, with knobs set, in so many copies; what comes out is a
//! [`Run`](crate::measurements::Run). The variants of one replay run in parallel, each on a thread of its own; how many
//! threads there are changes nothing in the results.

mod copies;
#[cfg(test)]
mod object_tests;
mod objects;
mod outcome;
mod plan;
mod player;
mod program;
mod proof;
mod run;
mod share;
mod source;
mod stood;
pub mod survey;
#[cfg(test)]
mod tests;
mod unknown;

pub use crate::program::{PageLoop, RecordedOn};
pub use crate::stage::GroupSetting;
pub use crate::stage::placement::{CpuListError, parse_cpu_list};
pub use plan::{
    Change, ParseSettingError, Plan, Setting, Variant, combinations, parse_change, parse_changes,
    parse_setting, parse_settings, parse_settings_of_all,
};
pub use proof::{policy_of, prove};
pub use run::{ReplayError, replay, replay_all};
pub use share::{CpuChoice, Share, ShareError, ShareOptions, Shares, policy as parse_mempolicy};
pub use source::Source;
pub use stood::{begin_as_recorded, stood_otherwise};
