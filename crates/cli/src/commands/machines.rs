//! `freehold machines`.

use sim::Profile;

use crate::args::{Global, Machines, MachinesWhat};
use crate::common::{Failure, Verdict, machine, print, style};

pub(crate) fn run(global: &Global, options: &Machines) -> Result<Verdict, Failure> {
    match &options.what {
        None | Some(MachinesWhat::List) => list(global),
        Some(MachinesWhat::Show { machine: name }) => {
            let profile = machine(name)?;
            print(&if global.json { json(&[profile])? } else { report::machines::show(style(), &profile) });
            Ok(Verdict::Fine)
        }
    }
}

fn list(global: &Global) -> Result<Verdict, Failure> {
    let profiles: Vec<Profile> = Profile::builtin_names().map(machine).collect::<Result<_, _>>()?;
    print(&if global.json { json(&profiles)? } else { report::machines::list(style(), &profiles) });
    Ok(Verdict::Fine)
}

/// Names, sizes and every figure with its kind and source.
fn json(profiles: &[Profile]) -> Result<String, Failure> {
    let entries: Vec<serde_json::Value> = profiles
        .iter()
        .map(|profile| {
            let figures: serde_json::Map<String, serde_json::Value> = profile
                .figures()
                .map(|(spec, figure)| {
                    let entry = serde_json::json!({
                        "value": figure.value,
                        "kind": figure.kind.name(),
                        "source": figure.source,
                    });
                    (spec.key.to_owned(), entry)
                })
                .collect();
            serde_json::json!({
                "name": profile.name(),
                "title": profile.title(),
                "cpus": profile.shape().cpu_count(),
                "nodes": profile.shape().nodes.len(),
                "figures": figures,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&entries).map_err(Failure::of)? + "\n")
}
