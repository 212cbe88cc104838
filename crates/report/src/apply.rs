//! What `freehold apply` says: what a plan comes to, how to keep it over a boot, what the watch saw, what was taken back.

use std::fmt::Write as _;

use host::settings::{Change, TakenBack};
use lab::apply::{Step, Watched, Way, writes};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units;

/// What each setting of a plan comes to, what cannot be undone, and how it is kept over a boot.
pub fn plan(style: Style, steps: &[Step]) -> String {
    let mut out = String::new();
    let mut table = Table::new(["<setting", "now", "to be", "<file"]);
    let mut others = String::new();
    for step in steps {
        let (name, value) = (step.knob.spec().name, step.knob.written(step.value).to_string());
        match &step.way {
            Way::Write { path, text, now } => {
                let now = now.clone().unwrap_or_else(|| "–".to_owned());
                table.row([name.to_owned(), now, text.clone(), (*path).to_owned()]);
            }
            Way::IsSo { path } => {
                table.row([name.to_owned(), value, "as it is".to_owned(), (*path).to_owned()]);
            }
            Way::Boot { words } => {
                lines(
                    &mut others,
                    style,
                    &format!("{words}: on the kernel's command line, from the next boot on"),
                );
            }
            Way::Not(why) => lines(&mut others, style, &style.bad(&format!("{name}={value}: {why}"))),
        }
    }
    if steps.iter().any(|step| matches!(step.way, Way::Write { .. } | Way::IsSo { .. })) {
        out += &table.text(0, style.columns());
    }
    out += &others;
    let mut left: Vec<&str> = steps.iter().filter_map(|step| step.leaves).collect();
    left.dedup();
    for leaves in left {
        lines(&mut out, style, &format!("Cannot be undone: {leaves}."));
    }
    out + &kept(style, steps)
}

/// The files that keep it over a boot.
fn kept(style: Style, steps: &[Step]) -> String {
    let (mut sysctls, mut files, mut words) = (String::new(), String::new(), vec![]);
    for held in writes(steps) {
        let path = held.path.to_string_lossy().into_owned();
        match path.strip_prefix("/proc/sys/") {
            Some(name) => {
                let _ = writeln!(sysctls, "  {} = {}", name.replace('/', "."), held.text);
            }
            None => {
                let _ = writeln!(files, "  w {path} - - - - {}", held.text);
            }
        }
    }
    for step in steps {
        if let Way::Boot { words: word } = &step.way {
            words.push(word.split(' ').next().unwrap_or(word));
        }
    }
    let mut out = String::new();
    for (file, text) in
        [("/etc/sysctl.d/90-freehold.conf", sysctls), ("/etc/tmpfiles.d/90-freehold.conf", files)]
    {
        if !text.is_empty() {
            let _ = write!(out, "{}\n{text}", style.heading(&format!("to keep it over a boot, {file}")));
        }
    }
    if !words.is_empty() {
        let heading = style.heading("to have it from the next boot on, the kernel's command line");
        let _ = writeln!(out, "{heading}\n  {}", words.join(" "));
    }
    out
}

/// What the watch saw.
pub fn watched(style: Style, all: &[Watched]) -> String {
    let mut table = Table::new(["<watched", "before", "during", "worst 10 s", "limit"]);
    for watched in all {
        let figure =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| amount(watched.unit(), value));
        let figures = [watched.before, watched.during, watched.worst, watched.limit].map(figure);
        let [before, during, worst, limit] = figures;
        table.row([watched.bound.to_string(), before, during, worst, limit]);
    }
    table.text(0, style.columns())
}

fn amount(unit: &str, value: f64) -> String {
    match unit {
        "of the time" => format!("{:.1} %", 100.0 * value),
        "ns" => units::duration(value),
        "pages" => units::memory(value as u64),
        _ => format!("{}/s", units::count(value)),
    }
}

/// What became of each setting that was to be taken back.
pub fn taken_back(style: Style, all: &[(Change, TakenBack)]) -> String {
    let mut out = String::new();
    for (change, became) in all {
        let path = change.path.display();
        let line = match became {
            TakenBack::Done => format!("{path}: {} again, after {}", change.before, change.wrote),
            TakenBack::WasBack => format!("{path}: was {} again already", change.before),
            TakenBack::Changed(holds) => style.bad(&format!(
                "{path}: left at {holds}; somebody else changed it after {} was written (--force writes {})",
                change.wrote, change.before
            )),
            TakenBack::Failed(error) => style.bad(&error.to_string()),
        };
        lines(&mut out, style, &line);
    }
    out
}

fn lines(out: &mut String, style: Style, text: &str) {
    for line in wrap(text, style.columns()) {
        out.push_str(&line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use lab::apply::{Kernel, Plan, check};
    use mm::Policy;

    use super::*;

    #[test]
    fn a_plan_says_what_is_written_and_what_is_kept() {
        let text = "transparent_hugepage.enabled = madvise\nvm.min_free_kbytes = 65536\nvm.lowmem_reserve_ratio.normal = 16\n\
                    vm.pcp_batch_scale_max = 5\nslab_max_order = 1\n";
        let policy = Policy::parse("linux-6.12").unwrap();
        let steps = check(&Plan::parse(text).unwrap(), &Kernel::Of(Box::new(policy)));
        insta::assert_snapshot!(plan(Style::plain(), &steps), @r"
        setting                         now       to be  file
        transparent_hugepage.enabled      –     madvise  /sys/kernel/mm/transparent_hugepage/enabled
        vm.min_free_kbytes                –       65536  /proc/sys/vm/min_free_kbytes
        vm.lowmem_reserve_ratio.normal    –  256 256 16  /proc/sys/vm/lowmem_reserve_ratio
        vm.pcp_batch_scale_max=5: no mainline kernel has this (CONFIG_PCP_BATCH_SCALE_MAX at build time)
        slab_max_order=1 (slub_max_order= in older kernels): on the kernel's command line, from the next boot on
        Cannot be undone: huge pages that are made meanwhile stay until their programs give them back; where
        khugepaged starts or stops by it, the kernel calculates vm.min_free_kbytes anew, unless it was set by hand.
        Cannot be undone: the kernel counts it as set by hand until the next boot, and adjusts it no more by itself;
        pages that are evicted meanwhile have to be read again.
        Cannot be undone: pages that are evicted meanwhile have to be read again.
        to keep it over a boot, /etc/sysctl.d/90-freehold.conf
          vm.min_free_kbytes = 65536
          vm.lowmem_reserve_ratio = 256 256 16
        to keep it over a boot, /etc/tmpfiles.d/90-freehold.conf
          w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise
        to have it from the next boot on, the kernel's command line
          slab_max_order=1
        ");
    }

    #[test]
    fn what_is_taken_back_is_said_file_by_file() {
        let change = Change { path: "/proc/sys/vm/x".into(), before: "1".into(), wrote: "2".into() };
        let all = [TakenBack::Done, TakenBack::WasBack, TakenBack::Changed("7".into())];
        let said = all.map(|became| (change.clone(), became));
        insta::assert_snapshot!(taken_back(Style::plain(), &said), @r"
        /proc/sys/vm/x: 1 again, after 2
        /proc/sys/vm/x: was 1 again already
        /proc/sys/vm/x: left at 7; somebody else changed it after 2 was written (--force writes 1)
        ");
    }
}
