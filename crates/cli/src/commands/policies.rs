//! `freehold policies`.

use mm::Policy;
use mm::policy::parts::PARTS;
use mm::policy::{NEWEST, OLDEST, Origin, RuleInForce, kmmscand};
use serde_json::{Value, json};

use crate::args::{Global, Policies, PoliciesWhat};
use crate::common::{Failure, Verdict, policy, show};

pub(crate) fn run(global: &Global, options: &Policies) -> Result<Verdict, Failure> {
    match &options.what {
        None | Some(PoliciesWhat::List) => show(global, "Policies", &listed(), report::policies::list)?,
        Some(PoliciesWhat::Show { policy: name }) => {
            let policy = policy(name)?;
            show(global, name, &shown(&policy), |style| report::policies::show(style, &policy))?;
        }
    }
    Ok(Verdict::Fine)
}

fn listed() -> Value {
    let part = |part: &mm::policy::parts::Part| json!({ "name": part.name, "meaning": part.meaning, "freehold": part.is_in_freehold() });
    let series = |(name, version): (&str, mm::version::Version)| json!({ "name": name, "kernel": version.to_string() });
    json!({
        "oldest": format!("linux-{OLDEST}"),
        "newest": format!("linux-{NEWEST}"),
        "series": kmmscand().map(series).collect::<Vec<_>>(),
        "parts": PARTS.iter().map(part).collect::<Vec<_>>(),
    })
}

fn shown(policy: &Policy) -> Value {
    json!({
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
