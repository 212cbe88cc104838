//! A policy, and knobs that are set.

use mm::{Knob, Policy};

/// Rules and settings under which a subject is simulated: one side of a question of `why`, one setting of `tune`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// The policy.
    pub policy: Policy,
    /// Knobs that are set.
    pub knobs: Vec<(Knob, u64)>,
}

impl Side {
    /// What it is called: `linux-6.18 vm.pcp_batch_scale_max=0`.
    pub fn name(&self) -> String {
        let knobs =
            self.knobs.iter().map(|(knob, value)| format!(" {}={}", knob.spec().name, knob.written(*value)));
        self.policy.name().to_owned() + &knobs.collect::<String>()
    }

    /// The value that it sets a knob to, if it does.
    pub fn value(&self, knob: Knob) -> Option<u64> {
        self.knobs.iter().find(|(other, _)| *other == knob).map(|(_, value)| *value)
    }
}
