//! What a person writes on the machine itself to have what a run had.

use std::fmt::Write as _;

use lab::measurements::Run;
use mm::knobs::{Knob, StandsFor};

use crate::style::Style;

/// What stands for the folder of the program's cgroup, whose name the reader knows.
pub(crate) const CGROUP: &str = "/sys/fs/cgroup/$CGROUP";

/// For each variant that sets knobs, the lines for a root shell that set them, or why there is none; empty where no run
/// sets any.
pub fn text(style: Style, runs: &[Run]) -> String {
    let mut said: Vec<Vec<String>> = vec![];
    for run in runs {
        let lines = lines(run);
        if !lines.is_empty() && !said.contains(&lines) {
            said.push(lines);
        }
    }
    if said.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", style.heading("to set on the machine itself, as root"));
    for line in said.concat() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// Whether a note of a run says what [`lines`] says instead of a command.
pub(crate) fn says(note: &str) -> bool {
    note.contains("no mainline kernel has this")
}

/// A line for each knob of `run`, in the knobs' order.
pub(crate) fn lines(run: &Run) -> Vec<String> {
    // A file that holds several numbers is written as the knobs before left it.
    let mut held: Option<String> = None;
    let mut lines = vec![];
    for (name, value) in &run.knobs {
        let Ok(knob) = Knob::from_name(name) else { continue };
        let Ok(value) = knob.parse_one(&value.to_string()) else { continue };
        let command = knob.command(value, held.as_deref());
        if let (Some(command), StandsFor::SysctlNumber { .. }) = (&command, knob.spec().stands_for) {
            held = command.strip_prefix("echo ").and_then(|rest| rest.split(" > ").next()).map(str::to_owned);
        }
        lines.push(command.unwrap_or_else(|| nothing_to_write(knob, value)));
    }
    lines
}

fn nothing_to_write(knob: Knob, value: u64) -> String {
    let (name, written) = (knob.spec().name, knob.written(value));
    if let Some(command) = knob.command_in(CGROUP, value) {
        return command;
    }
    match knob.spec().stands_for {
        stands_for @ (StandsFor::BootParameter(_) | StandsFor::Nothing(_) | StandsFor::Tools(_)) => {
            format!("# {name}={written}: {stands_for}")
        }
        _ => format!("# {name}={written}: the kernel chooses so at boot; nothing is to be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(knobs: &[(&str, lab::measurements::KnobValue)]) -> Run {
        Run {
            knobs: knobs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn what_is_printed_can_be_pasted() {
        let runs = [
            run(&[("transparent_hugepage.enabled", "madvise".into())]),
            run(&[
                ("vm.lowmem_reserve_ratio.dma32", 128.into()),
                ("vm.lowmem_reserve_ratio.normal", 16.into()),
            ]),
            run(&[("transparent_hugepage.defrag", "default".into()), ("vm.pcp_batch_scale_max", 0.into())]),
        ];
        insta::assert_snapshot!(text(Style::plain(), &runs), @r"
        to set on the machine itself, as root
          echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
          echo 256 128 32 > /proc/sys/vm/lowmem_reserve_ratio
          echo 256 128 16 > /proc/sys/vm/lowmem_reserve_ratio
          # transparent_hugepage.defrag=default: the kernel chooses so at boot; nothing is to be written
          # vm.pcp_batch_scale_max=0: no mainline kernel has this (CONFIG_PCP_BATCH_SCALE_MAX at build time)
        ");
        assert_eq!(text(Style::plain(), &[Run::default()]), "");
    }
}
