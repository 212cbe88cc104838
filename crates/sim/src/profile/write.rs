//! A profile as TOML text, as a probe writes it.

use core::fmt::Write;

use mm::WordSize;

use super::{FigureSpread, LOW_END_MIB, Profile, SmtNumbering};

pub(super) fn profile(profile: &Profile) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_head(&mut out, profile);
    let _ = write_topology(&mut out, profile);
    let _ = write_figures(&mut out, profile);
    out
}

/// The topology without its source.
pub(super) fn shape_only(profile: &Profile) -> String {
    let mut out = String::new();
    let _ = write_topology(&mut out, profile);
    let kept = out.lines().filter(|line| !line.starts_with("source = "));
    kept.flat_map(|line| [line, "\n"]).collect()
}

fn write_head(out: &mut String, profile: &Profile) -> core::fmt::Result {
    writeln!(out, "name = {}", quoted(profile.name()))?;
    writeln!(out, "title = {}", quoted(profile.title()))
}

fn write_topology(out: &mut String, profile: &Profile) -> core::fmt::Result {
    let shape = profile.shape();
    let numbering = match shape.smt_numbering {
        SmtNumbering::Split => "split",
        SmtNumbering::Adjacent => "adjacent",
    };
    writeln!(out, "\n[topology]\nsource = {}", quoted(&shape.source))?;
    writeln!(out, "sockets = {}\ncores_per_socket = {}", shape.sockets, shape.cores_per_socket)?;
    writeln!(out, "threads_per_core = {}\ncores_per_llc = {}", shape.threads_per_core, shape.cores_per_llc)?;
    writeln!(out, "smt_numbering = \"{numbering}\"\ndistances = {:?}", shape.distances)?;
    if shape.word == WordSize::Bits32 {
        writeln!(out, "word_bits = 32")?;
    }
    if let Some(nodes) = &shape.cpuset_nodes {
        writeln!(out, "cpuset_nodes = {nodes:?}")?;
    }
    if shape.low_end_mib != LOW_END_MIB {
        writeln!(out, "low_end_mib = {}", shape.low_end_mib)?;
    }
    for node in &shape.nodes {
        writeln!(out, "\n[[topology.nodes]]\nsocket = {}\nmemory_mib = {}", node.socket, node.memory_mib)?;
        if node.extra_ns > 0.0 {
            writeln!(out, "extra_ns = {:?}", node.extra_ns)?;
        }
        if let Some(gbps) = node.gbps {
            writeln!(out, "gbps = {gbps:?}")?;
        }
        if !node.has_cpus {
            writeln!(out, "has_cpus = false")?;
        }
    }
    Ok(())
}

fn write_figures(out: &mut String, profile: &Profile) -> core::fmt::Result {
    let mut last = "";
    for (spec, figure) in profile.figures() {
        let (section, key) = spec.key.split_once('.').unwrap_or(("", spec.key));
        if section != last {
            writeln!(out, "\n[{section}]")?;
            last = section;
        }
        let (kind, source) = (figure.kind, quoted(&figure.source));
        let spread = figure.spread.as_ref().map_or_else(String::new, spread);
        writeln!(
            out,
            "{key} = {{ value = {:?}, kind = \"{kind}\", source = {source}{spread} }}",
            figure.value
        )?;
    }
    Ok(())
}

fn spread(spread: &FigureSpread) -> String {
    let FigureSpread { min, p25, p75, max, samples } = spread;
    format!(
        ", spread = {{ min = {min:?}, p25 = {p25:?}, p75 = {p75:?}, max = {max:?}, samples = {samples} }}"
    )
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}
