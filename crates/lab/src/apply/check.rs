//! What a plan comes to on a kernel: which files are written, what waits for a reboot, what no kernel has.

use std::collections::BTreeMap;

use host::KnobFile;
use host::settings::Held;
use mm::knobs::StandsFor;
use mm::{Knob, Policy};

use super::Plan;

/// The kernel that a plan is for.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// The one that runs here: its files say what it has.
    Running,
    /// Another, by what is known of its version.
    Of(Box<Policy>),
}

/// What is to be done about a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// A file is to be written.
    Write {
        /// The file.
        path: &'static str,
        /// What is written.
        text: String,
        /// What it holds now; `None` on another kernel than the one that runs.
        now: Option<String>,
    },
    /// The file holds that already.
    IsSo {
        /// The file.
        path: &'static str,
    },
    /// A word on the kernel's command line: the next boot has it.
    Boot {
        /// The word with its value, after what it is called in kernels of another age.
        words: String,
    },
    /// It cannot be had on this kernel: why.
    Not(String),
}

/// A setting of a plan and what it comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The knob.
    pub knob: Knob,
    /// The value.
    pub value: u64,
    /// What is to be done.
    pub way: Way,
    /// What putting it back will not undo.
    pub leaves: Option<&'static str>,
}

/// What each setting of `plan` comes to on `kernel`. Nothing is written.
pub fn check(plan: &Plan, kernel: &Kernel) -> Vec<Step> {
    // A file that holds several numbers is written as the settings before left it.
    let mut lines: BTreeMap<&'static str, String> = BTreeMap::new();
    let step = |&(knob, value): &(Knob, u64)| {
        let way = match kernel {
            Kernel::Running => here(knob, value, &mut lines),
            Kernel::Of(policy) => elsewhere(knob, value, policy),
        };
        let leaves = matches!(way, Way::Write { .. }).then(|| knob.spec().leaves.words()).flatten();
        Step { knob, value, way, leaves }
    };
    plan.settings().iter().map(step).collect()
}

/// What is written to each file, the last text of those that are written twice.
pub fn writes(steps: &[Step]) -> Vec<Held> {
    let mut writes: Vec<Held> = vec![];
    for step in steps {
        let Way::Write { path, text, .. } = &step.way else { continue };
        writes.retain(|held| held.path.as_os_str() != *path);
        writes.push(Held { path: (*path).into(), text: text.clone() });
    }
    writes
}

fn here(knob: Knob, value: u64, lines: &mut BTreeMap<&'static str, String>) -> Way {
    let Some(path) = knob.spec().stands_for.path() else { return without_file(knob, value) };
    let held =
        match lines.get(path).map_or_else(|| KnobFile::read(path), |line| KnobFile::Holds(line.clone())) {
            KnobFile::Holds(text) => text,
            KnobFile::Missing => return Way::Not(format!("this kernel has no {path}")),
            KnobFile::Unreadable(why) => return Way::Not(format!("{path}: {why}")),
        };
    let Some(file) = knob.file_text(value, Some(&held)) else { return without_file(knob, value) };
    let now = chosen(&held);
    let is_new = lines.insert(path, file.text.clone()).is_none();
    if now == file.text && is_new {
        return Way::IsSo { path };
    }
    Way::Write { path, text: file.text, now: Some(now.to_owned()) }
}

/// The word in brackets where a file lists all, else its line.
fn chosen(line: &str) -> &str {
    let word = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(line, |(word, _)| word)
}

fn elsewhere(knob: Knob, value: u64, policy: &Policy) -> Way {
    if let Err(error) = policy.check_knob(knob, value) {
        return Way::Not(error.to_string());
    }
    let file = knob.file_text(value, None);
    file.map_or_else(
        || without_file(knob, value),
        |file| Way::Write { path: file.path, text: file.text, now: None },
    )
}

fn without_file(knob: Knob, value: u64) -> Way {
    match knob.spec().stands_for {
        StandsFor::BootParameter(words) => {
            let (first, rest) = words.split_once('=').unwrap_or((words, ""));
            Way::Boot { words: format!("{first}={}{rest}", knob.written(value)) }
        }
        stands_for @ (StandsFor::Nothing(_) | StandsFor::Tools(_)) => Way::Not(stands_for.to_string()),
        stands_for @ StandsFor::Cgroup { .. } => Way::Not(format!(
            "it is a cgroup's, and a plan has files of the whole machine alone: {stands_for}"
        )),
        _ => Way::Not("the kernel chooses so at boot; nothing is to be written".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(kernel: &str, text: &str) -> Vec<Step> {
        let policy = Policy::parse(kernel).unwrap();
        check(&Plan::parse(text).unwrap(), &Kernel::Of(Box::new(policy)))
    }

    #[test]
    fn each_setting_has_its_way() {
        let text = "transparent_hugepage.enabled = madvise\nvm.pcp_batch_scale_max = 5\nslab_max_order = 1\nvm.swappiness = 150\n\
                    transparent_hugepage.defrag = default\n";
        let ways: Vec<Way> = on("linux-5.4", text).into_iter().map(|step| step.way).collect();
        insta::assert_snapshot!(ways.iter().map(|way| format!("{way:?}")).collect::<Vec<_>>().join("\n"), @r#"
        Write { path: "/sys/kernel/mm/transparent_hugepage/enabled", text: "madvise", now: None }
        Not("no mainline kernel has this (CONFIG_PCP_BATCH_SCALE_MAX at build time)")
        Boot { words: "slab_max_order=1 (slub_max_order= in older kernels)" }
        Not("vm.swappiness = 150 is refused under linux-5.4: Linux since 5.8 takes that value")
        Not("the kernel chooses so at boot; nothing is to be written")
        "#);
        let newer = on("linux-6.12", "vm.swappiness = 150\n");
        assert!(matches!(newer[0].way, Way::Write { path: "/proc/sys/vm/swappiness", now: None, .. }));
        assert!(newer[0].leaves.is_some_and(|leaves| leaves.contains("swapped out")));
    }

    #[test]
    fn numbers_of_one_file_are_written_together() {
        let plan = Plan::parse("vm.lowmem_reserve_ratio.dma32 = 128\nvm.lowmem_reserve_ratio.normal = 16\n")
            .unwrap();
        let mut lines = BTreeMap::from([("/proc/sys/vm/lowmem_reserve_ratio", "256 256 32 0 0".to_owned())]);
        let mut steps = vec![];
        for &(knob, value) in plan.settings() {
            let way = here(knob, value, &mut lines);
            steps.push(Step { knob, value, way, leaves: None });
        }
        let held = writes(&steps);
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].text, "256 128 16 0 0");
    }

    #[test]
    fn what_holds_already_is_not_written() {
        let Ok(now) = host::settings::current(std::path::Path::new("/proc/sys/vm/swappiness")) else {
            return;
        };
        let plan = Plan::parse(&format!("vm.swappiness = {now}")).unwrap();
        let steps = check(&plan, &Kernel::Running);
        assert_eq!(steps[0].way, Way::IsSo { path: "/proc/sys/vm/swappiness" });
        assert!(writes(&steps).is_empty() && steps[0].leaves.is_none());
    }
}
