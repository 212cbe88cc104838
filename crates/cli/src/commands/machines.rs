//! `freehold machines`.

use std::path::Path;

use mm::{Knob, Node, Policy, Zonelists};
use sim::Profile;

use crate::args::{Global, Machines, MachinesWhat};
use crate::common::{CommandVerdict, Failure, machine, note, policy, show};
use crate::output::Destination;
use crate::progress::Bar;
use crate::this_machine::machine_or_this;

pub(crate) fn run(global: &Global, options: &Machines) -> Result<CommandVerdict, Failure> {
    match &options.what {
        None | Some(MachinesWhat::List) => list(global),
        Some(MachinesWhat::Show { machine: name, zonelists: true, policy: rules, order }) => {
            let order = Knob::NumaZonelistOrder.parse_one(order).map_err(Failure::of)?;
            // Wrong usage is said before this machine is measured.
            let rules = policy(rules)?;
            zonelists(global, &machine_or_this(global, name)?, &rules, order)
        }
        Some(MachinesWhat::Show { machine: name, .. }) => {
            let profile = machine_or_this(global, name)?;
            let json = json(std::slice::from_ref(&profile));
            show(global, profile.title(), &json, |style| report::machines::show(style, &profile))?;
            Ok(CommandVerdict::Fine)
        }
        Some(MachinesWhat::Probe { output }) => probe(global, output.as_deref()),
    }
}

fn zonelists(
    global: &Global,
    profile: &Profile,
    policy: &Policy,
    order: u64,
) -> Result<CommandVerdict, Failure> {
    policy.check_knob(Knob::NumaZonelistOrder, order).map_err(Failure::of)?;
    let topology = profile.topology();
    let lists = Zonelists::new(&topology, policy.rules());
    let choice = lists.choose(&topology, policy.rules(), order);
    let nodes = (0..topology.nodes.len()).map(|node| Node(node as u16));
    let entries: Vec<serde_json::Value> = nodes
        .map(|node| {
            let fallback: Vec<u16> = lists.fallback(node).iter().map(|next| next.0).collect();
            let zones = lists.zones(node).map(|(node, kind)| serde_json::json!([node.0, kind.name()]));
            serde_json::json!({
                "node": node.0,
                "fallback": fallback,
                "zones": zones.collect::<Vec<_>>(),
            })
        })
        .collect();
    let document = serde_json::json!({
        "machine": profile.name(),
        "policy": policy.name(),
        "order": choice.order.name(),
        "reason": choice.reason.to_string(),
        "nodes": entries,
    });
    let title = format!("Zonelists of {} under {}", profile.name(), policy.name());
    show(global, &title, &document, |style| report::zonelists::show(style, profile, policy, &lists, choice))?;
    Ok(CommandVerdict::Fine)
}

fn probe(global: &Global, output: Option<&Path>) -> Result<CommandVerdict, Failure> {
    // A profile is read by its ending; what cannot be written is said before anything is measured.
    if let Some(path) = output {
        if path.extension().is_none_or(|ext| !ext.eq_ignore_ascii_case("toml")) {
            return Err(Failure::at(path, "a profile's name ends in .toml"));
        }
    }
    let destination = output.map(Destination::of).transpose()?;
    let bar = Bar::new(global, 0);
    let probe = host::probe::run(|what| bar.step(what.to_owned()));
    bar.done();
    let probe = probe.map_err(Failure::of)?;
    let name = output.and_then(Path::file_stem).map_or("probed".into(), |stem| stem.to_string_lossy());
    let probed = lab::this_machine::probe::profile(&probe, &name).map_err(Failure::of)?;
    if let Some(destination) = destination {
        destination.write(probed.profile.to_toml().as_bytes())?;
    }
    let json = json(std::slice::from_ref(&probed.profile));
    show(global, "This machine, measured", &json, |style| report::machines::probed(style, &probed))?;
    note(
        global,
        &match output {
            Some(path) => format!(
                "written to {0}; `freehold machines show {0}` says how each was measured",
                path.display()
            ),
            None => "-o FILE.toml writes it as a profile, which says how each was measured".into(),
        },
    );
    Ok(CommandVerdict::Fine)
}

fn list(global: &Global) -> Result<CommandVerdict, Failure> {
    let profiles: Vec<Profile> = Profile::builtin_names().map(machine).collect::<Result<_, _>>()?;
    show(global, "Machine profiles", &json(&profiles), |style| report::machines::list(style, &profiles))?;
    Ok(CommandVerdict::Fine)
}

/// Names, sizes and every figure with its kind and source.
fn json(profiles: &[Profile]) -> serde_json::Value {
    let machines: Vec<serde_json::Value> = profiles
        .iter()
        .map(|profile| {
            let figures: serde_json::Map<String, serde_json::Value> = profile
                .figures()
                .map(|(spec, figure)| {
                    let entry = serde_json::json!({
                        "value": figure.value,
                        "kind": figure.kind.name(),
                        "source": figure.source,
                        "spread": figure.spread.map(|spread| serde_json::json!({
                            "min": spread.min,
                            "p25": spread.p25,
                            "p75": spread.p75,
                            "max": spread.max,
                            "samples": spread.samples,
                        })),
                    });
                    (spec.key.to_owned(), entry)
                })
                .collect();
            serde_json::json!({
                "name": profile.name(),
                "title": profile.title(),
                "digest": profile.digest(),
                "cpus": profile.shape().cpu_count(),
                "nodes": profile.shape().nodes.len(),
                "figures": figures,
            })
        })
        .collect();
    serde_json::json!({ "machines": machines })
}
