//! `freehold policies`.

use lab::evidence::{Held, Judgement, Table};
use mm::Policy;
use mm::policy::parts::PARTS;
use mm::policy::{Mechanism, NEWEST, OLDEST, Origin, RuleInForce, kmmscand};
use report::policies::MechanismLabels;
use serde_json::{Value, json};
use sim::Profile;

use crate::args::{Global, Policies, PoliciesWhat};
use crate::common::{CommandVerdict, Failure, machine, policy, show};

pub(crate) fn run(global: &Global, options: &Policies) -> Result<CommandVerdict, Failure> {
    match &options.what {
        None | Some(PoliciesWhat::List) => {
            let held = &Table::bundled().held;
            show(global, "Policies", &listed(held), |style| report::policies::list(style, held))?;
        }
        Some(PoliciesWhat::Show { policy: name, machine: on }) => {
            let policy = policy(name)?;
            let profile = on.as_deref().map(machine).transpose()?;
            let labels = labels(&policy, profile.as_ref());
            show(global, name, &shown(&policy, &labels), |style| {
                report::policies::show(style, &policy, &labels)
            })?;
        }
    }
    Ok(CommandVerdict::Fine)
}

fn listed(held: &[Held]) -> Value {
    let of_kernel = |held: &Held| {
        json!({
            "policy": held.policy,
            "check": held.check.name(),
            "mechanism": held.mechanism.name(),
            "scene": held.scene,
            "files": held.files,
            "compared": held.compared,
            "equal": held.equal,
            "errors": held.errors,
            "stayed": held.stayed,
        })
    };
    let part = |part: &mm::policy::parts::Part| json!({ "name": part.name, "meaning": part.meaning, "freehold": part.is_in_freehold() });
    let series = |(name, version): (&str, mm::version::Version)| json!({ "name": name, "kernel": version.to_string() });
    json!({
        "oldest": format!("linux-{OLDEST}"),
        "newest": format!("linux-{NEWEST}"),
        "held": held.iter().map(of_kernel).collect::<Vec<_>>(),
        "series": kmmscand().map(series).collect::<Vec<_>>(),
        "parts": PARTS.iter().map(part).collect::<Vec<_>>(),
    })
}

/// What each mechanism rests on: what it does, and on `profile` how long that takes.
fn labels(policy: &Policy, profile: Option<&Profile>) -> Vec<MechanismLabels> {
    let of = |mechanism| {
        let judgement = Judgement { table: Table::bundled(), policy, mechanism };
        let counts = profile.map_or_else(|| judgement.rules(), |profile| judgement.counts(profile));
        MechanismLabels { mechanism, counts, times: profile.and_then(|profile| judgement.times(profile)) }
    };
    Mechanism::ALL.into_iter().map(of).collect()
}

fn shown(policy: &Policy, labels: &[MechanismLabels]) -> Value {
    let label = |of: &MechanismLabels| {
        (of.mechanism.name().to_owned(), json!({ "counts": of.counts, "times": of.times }))
    };
    json!({
        "labels": labels.iter().map(label).collect::<serde_json::Map<_, _>>(),
        "name": policy.name(),
        "kernel": format!("linux-{}", policy.kernel()),
        "rules": policy.rules_in_force().iter().map(rule).collect::<Vec<_>>(),
    })
}

fn rule(rule: &RuleInForce) -> Value {
    let (since, before) = match rule.origin {
        Origin::Kernels { since, before } => (since, before),
        Origin::Part => (None, None),
    };
    json!({
        "name": rule.name,
        "mechanisms": rule.mechanisms.iter().map(|mechanism| mechanism.name()).collect::<Vec<_>>(),
        "question": rule.question,
        "answer": rule.answer,
        "since": since.map(|version| version.to_string()),
        "before": before.map(|version| version.to_string()),
        "part": rule.origin == Origin::Part,
    })
}
