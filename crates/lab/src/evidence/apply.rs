//! Labels on a run: of each mechanism that it used, and the least of them.

use mm::Policy;
use mm::policy::Mechanism;
use sim::Profile;

use super::judge::Judgement;
use super::{Table, used};
use crate::measurements::{Confidence, Label, MechanismLabel, Run};

/// What an experiment says of its own figures. It can lower a label and never raise one.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The label.
    pub label: Confidence,
    /// Why.
    pub because: &'a str,
    /// The mechanisms that its figures tell of.
    pub about: &'a [Mechanism],
}

/// What times were checked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// The rows of published experiments.
    ByRows,
    /// The kernel that runs here, in the same document.
    Here,
}

/// Puts labels, and the model's intervals of its times, on `run`, which `policy` and `profile` made, by what `table` has.
pub fn label(run: &mut Run, table: &Table, policy: &Policy, profile: &Profile, checked: Checked) {
    let of = |mechanism| {
        let judgement = Judgement { table, policy, mechanism };
        (mechanism, mechanism_label(&judgement, profile, checked))
    };
    let labels: Vec<(Mechanism, MechanismLabel)> = used(run).into_iter().map(of).collect();
    // The first of equals, so that page lists speak before what hangs on them.
    let least = labels.iter().rev().max_by_key(|(_, label)| label.label);
    if let Some((_, least)) = least {
        run.confidence = least.label;
        run.confidence_reason.clone_from(&least.reason);
    } else {
        run.confidence = Confidence::Extrapolated;
        "the run used no mechanism that could be checked".clone_into(&mut run.confidence_reason);
    }
    run.labels = labels.into_iter().map(|(mechanism, label)| (mechanism.name().to_owned(), label)).collect();
    table.put_on(run);
}

fn mechanism_label(judgement: &Judgement<'_>, profile: &Profile, checked: Checked) -> MechanismLabel {
    let counts = judgement.counts(profile);
    let times = match checked {
        Checked::ByRows => judgement.times(profile),
        Checked::Here => {
            let here = "the rows hold them against the kernel that runs here";
            judgement.times(profile).map(|_| Label::new(Confidence::Predicted, here))
        }
    };
    let label = times.as_ref().map_or(counts.label, |times| times.label.max(counts.label));
    let subject = format!("{} under {}", judgement.mechanism.words(), judgement.policy.name());
    let reason = match &times {
        Some(times) => format!("{subject}: {}; times: {}", counts.reason, times.reason),
        None => format!("{subject}: {}", counts.reason),
    };
    MechanismLabel { label, reason, counts, times }
}

impl Claim<'_> {
    /// Puts what is claimed on a run that has its labels, as far as the evidence for it goes: *exact* is said of what the
    /// mechanisms in question did, *predicted* of how long that took. A claim of less is granted, one of more is not.
    pub fn bound(&self, run: &mut Run) {
        run.claimed = self.label;
        let named = |mechanism: &Mechanism| {
            let of = run.labels.get(mechanism.name())?;
            let times = of.times.as_ref().filter(|_| self.label != Confidence::Exact);
            let Label { label, reason } = times.unwrap_or(&of.counts);
            Some(Label::new(*label, format!("{} under {}: {reason}", mechanism.words(), run.policy)))
        };
        let evidence = self.about.iter().filter_map(named).max_by_key(|label| label.label);
        let evidence = evidence.unwrap_or_else(|| Label::new(run.confidence, run.confidence_reason.clone()));
        let claimed = Label::new(self.label, self.because);
        let Label { label, reason } = if claimed.label >= evidence.label { claimed } else { evidence };
        run.confidence = label;
        run.confidence_reason = reason;
    }
}
