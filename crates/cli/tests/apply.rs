//! `apply`: what it says beforehand, what it refuses, and that settings are as they were after a revert, a broken bound, a signal and
//! a kill.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{freehold, refusal, stdout};

const KNOB: &str = "transparent_hugepage.khugepaged.scan_sleep_millisecs";
const FILE: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";

#[test]
fn another_kernels_way_is_told_without_writing() {
    let words = ["--set", "transparent_hugepage.enabled=madvise", "--set", "vm.min_free_kbytes=64M"];
    let words = [&["apply", "--kernel", "6.12"], &words[..], &["--set", "slab_max_order=1"]].concat();
    let text = stdout(&words);
    for said in [
        "  vm.min_free_kbytes = 65536\n",
        "  w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n",
    ] {
        assert!(text.contains(said), "{text}");
    }
    assert!(text.ends_with("command line\n  slab_max_order=1\n"), "{text}");
    assert_eq!(freehold(&["apply", "--kernel", "5.4", "--set", "vm.swappiness=150"]).status.code(), Some(1));
}

#[test]
fn what_cannot_be_applied_is_refused_in_a_line() {
    let refused = |words: &[&str]| refusal(&[&["apply"], words].concat());
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan");
    fs::write(&plan, "vm.swappiness = 10\nvm.swapiness = 20\n").unwrap();
    let line = refused(&[plan.to_str().unwrap()]);
    assert!(line.ends_with("plan: line 2: no knob is called 'vm.swapiness'\n"), "{line}");
    let all = [
        refused(&[]),
        refused(&["--set", "vm.swappiness=1,2"]),
        refused(&["--set", "vm.pcp_batch_scale_max=0"]),
        refused(&["--set", "vm.swappiness=1", "--watch", "1s"]),
        refused(&["--set", "vm.swappiness=1", "--watch", "10s", "--keep", "oom_kils:max=0"]),
        refused(&["--set", "vm.swappiness=1", "--keep", "oom_kill:max=0"]),
        refused(&["--set", "vm.swappiness=1", "--kernel", "1.0"]),
    ];
    insta::assert_snapshot!(all.concat(), @r"
    freehold: apply needs a plan: a file of KNOB = VALUE lines, or --set KNOB=V
    freehold: --set vm.swappiness has several values; a machine has one at a time
    freehold: vm.pcp_batch_scale_max: no mainline kernel has this (CONFIG_PCP_BATCH_SCALE_MAX at build time); nothing was written
    freehold: invalid value '1s' for '--watch <TIME>': a time from 4 s to 7 days, such as 90s, 10m or 2h
    freehold: no figure `oom_kils`; did you mean `oom_kill`? `freehold apply --help` lists them
    freehold: the following required arguments were not provided: --watch <TIME>
    freehold: no policy is called 'linux-1.0': there are no rules for Linux 1.0: the oldest known here is linux-3.0
    ");
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn now() -> String {
    fs::read_to_string(FILE).unwrap()
}

fn assert_holds(output: &Output, status: i32, setting: &str) {
    assert_eq!((output.status.code(), now().as_str()), (Some(status), setting), "{}", said(output));
}

/// The setting as it was, a plan that changes it, and a folder for notes.
struct Trial {
    folder: tempfile::TempDir,
    before: String,
    plan: String,
}

impl Trial {
    /// `None` where there is no such setting, or it is for root.
    fn new() -> Option<Self> {
        let before = fs::read_to_string(FILE).ok()?;
        fs::OpenOptions::new().write(true).open(FILE).ok()?;
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan");
        fs::write(&plan, format!("# a trial\n{KNOB} = 54321\n")).unwrap();
        Some(Self { plan: plan.to_str().unwrap().to_owned(), folder, before })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut freehold = Command::new(env!("CARGO_BIN_EXE_freehold"));
        freehold.arg("apply").args(words).env("XDG_STATE_HOME", self.folder.path());
        freehold.stdout(Stdio::piped()).stderr(Stdio::piped());
        freehold
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts a watch of a minute, and waits until the setting is another.
    fn begun(&self) -> Child {
        let child = self.command(&[&self.plan, "--watch", "60s"]).spawn().unwrap();
        let start = Instant::now();
        while now() == self.before {
            assert!(start.elapsed() < Duration::from_secs(30), "the setting was never changed");
            sleep(Duration::from_millis(5));
        }
        child
    }

    /// Whether there is a journal of a trial, and a note of what was applied.
    fn notes(&self) -> [bool; 2] {
        ["journal", "applied"]
            .map(|name| self.folder.path().join(format!("freehold/settings.{name}")).exists())
    }

    /// All is as it was, and nothing is noted.
    fn assert_back(&self, output: &Output, status: i32) {
        assert_holds(output, status, &self.before);
        assert_eq!(self.notes(), [false, false], "{}", said(output));
    }

    fn a_change_stays_until_it_is_reverted(&self) {
        let output = self.run(&[&self.plan, "--dry-run"]);
        self.assert_back(&output, 0);
        assert!(said(&output).contains("54321") && said(&output).contains("Cannot be undone: huge pages"));
        let output = self.run(&[&self.plan]);
        assert_holds(&output, 0, "54321\n");
        assert_eq!(self.notes(), [false, true]);
        // What was there before the first of two changes is what comes back.
        let again = format!("{KNOB}=65432");
        let watched = ["--set", &again, "--watch", "4s", "--keep", "oom_kill:max=0,fault.p99_ns:max=1s"];
        let output = self.run(&watched);
        assert_holds(&output, 0, "65432\n");
        assert!(said(&output).contains("fault.p99_ns:max=1s"), "{}", said(&output));
        self.assert_back(&self.run(&["--revert"]), 0);
    }

    fn a_broken_bound_puts_it_back(&self) {
        // Its own 500 faults a second are more than that.
        let bounds = "pgfault:max=1,fault.p99_ns:max=1s";
        let output = self.run(&[&self.plan, "--watch", "60s", "--keep", bounds, "--json"]);
        self.assert_back(&output, 1);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["outcome"], "put back");
        assert!(json["broken"].as_str().unwrap().starts_with("pgfault:max=1 is broken"), "{json}");
    }

    fn a_signal_puts_it_back_and_after_a_kill_the_next_start(&self) {
        let child = self.begun();
        Command::new("kill").arg(child.id().to_string()).status().unwrap();
        self.assert_back(&child.wait_with_output().unwrap(), 2);
        let mut child = self.begun();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((now().as_str(), self.notes()), ("54321\n", [true, false]), "nobody could put it back");
        self.assert_back(&self.run(&["--revert"]), 0);
    }

    fn what_somebody_else_changed_is_left_unless_asked_for(&self) {
        self.run(&[&self.plan]);
        fs::write(FILE, "11111\n").unwrap();
        assert_holds(&self.run(&["--revert"]), 1, "11111\n");
        self.assert_back(&self.run(&["--revert", "--force"]), 0);
    }
}

/// A test that fails leaves the machine as it was, too.
impl Drop for Trial {
    fn drop(&mut self) {
        let _ = fs::write(FILE, &self.before);
    }
}

/// One test, for all of it changes the one setting of this machine.
#[test]
fn settings_are_as_they_were() {
    let Some(trial) = Trial::new() else {
        return eprintln!("skipped: no khugepaged here, or settings are for root");
    };
    trial.a_change_stays_until_it_is_reverted();
    trial.a_broken_bound_puts_it_back();
    trial.a_signal_puts_it_back_and_after_a_kill_the_next_start();
    trial.what_somebody_else_changed_is_left_unless_asked_for();
}

/// What `make guests` saw in a guest of Linux 6.12: its sections, each a list of names and values.
#[test]
fn in_a_guest_the_lines_acted_and_what_was_there_came_back() {
    let text = include_str!("../../../conformance/guests/apply.txt");
    let section = |name: &str| {
        let (_, rest) =
            text.split_once(&format!("@@{name}\n")).unwrap_or_else(|| panic!("no {name} in {text}"));
        let lines = rest.split("@@").next().unwrap().lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let [before, applied, reverted, after] = ["before", "applied", "reverted", "after"].map(section);
    let number = |of: &BTreeMap<String, String>, name: &str| of[name].parse::<u64>().unwrap();
    let files = before.keys().filter(|name| name.starts_with('/') && !name.ends_with("min_free_kbytes"));
    for file in files.filter(|file| !file.ends_with("swappiness")) {
        assert_ne!(before[file], applied[file], "{file}");
        assert_eq!((&before[file], &before[file]), (&reverted[file], &after[file]), "{file}");
    }
    assert_eq!(before["/proc/sys/vm/swappiness"], after["/proc/sys/vm/swappiness"]);
    assert!(
        number(&applied, "faults") * 10 < number(&before, "faults"),
        "huge pages took the place of faults"
    );
    assert!(number(&applied, "low_marks") > 4 * number(&before, "low_marks"));
    assert!(number(&applied, "list_highs") > number(&before, "list_highs"));
    for back in [&reverted, &after] {
        for name in ["faults", "low_marks"] {
            assert!(
                number(back, name).abs_diff(number(&before, name)) * 50 < number(&before, name),
                "{name}"
            );
        }
    }
}
