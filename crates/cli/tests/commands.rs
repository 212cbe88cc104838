//! What the commands print of a small recording.

mod common;

use common::{MACHINE, freehold, recording, refusal_with, stdout};
use lab::measurements::Document;

fn replay(extra: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 20_000);
    let mut words = vec!["replay", rec.to_str().unwrap(), "--quiet"];
    words.extend(extra);
    if !extra.contains(&"--machine") {
        words.push(MACHINE);
    }
    stdout(&words)
}

fn document(extra: &[&str]) -> Document {
    let mut words = vec!["--json"];
    words.extend(extra);
    let mut document = Document::from_json(&replay(&words)).unwrap().without_wall_time();
    // The command line names a temporary file.
    document.command.clear();
    document
}

#[test]
fn one_seed_one_document_whatever_the_threads() {
    let words =
        ["--machine", "xeon-8260", "--copies", "6", "--seeds", "2", "--set", "vm.pcp_batch_scale_max=5,0"];
    let with = |jobs: &str, seed: &str| document(&[&words[..], &["--jobs", jobs, "--seed", seed]].concat());
    let first = with("1", "7");
    assert_eq!(first.runs.len(), 4);
    assert!(first.means.iter().all(|mean| mean.seeds == 2 && mean.low <= Some(mean.mean)));
    assert_eq!(first, with("1", "7"));
    assert_eq!(first, with("2", "7"));
    assert_ne!(first, with("2", "8"));
}

#[test]
fn a_replay_says_what_stood_where_it_was_recorded_and_may_begin_with_it() {
    let redis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/redis-program.rec");
    let document = |extra: &[&str]| {
        let words = ["replay", redis, MACHINE, "--seeds", "1", "--quiet", "--json"];
        Document::from_json(&stdout(&[&words[..], extra].concat())).unwrap()
    };
    let plain = document(&[]);
    assert!(
        plain.notes[0].contains("recorded with transparent_hugepage.enabled=madvise"),
        "{:?}",
        plain.notes
    );
    let begun = document(&["--as-recorded"]);
    assert_eq!((&begun.runs[0].variant[..], begun.notes.len()), ("transparent_hugepage.enabled=madvise", 0));
    assert_ne!(begun.runs[0].program, plain.runs[0].program, "huge pages for those that ask");
    let set = document(&["--as-recorded", "--set", "transparent_hugepage.enabled=never"]);
    assert_eq!(set.runs[0].variant, "transparent_hugepage.enabled=never", "what is set comes first");

    let folder = tempfile::tempdir().unwrap();
    let events = recording(folder.path(), 100);
    let refused = refusal_with(2, &["replay", events.to_str().unwrap(), MACHINE, "--as-recorded"]);
    assert!(refused.contains("--as-recorded: ") && refused.contains("of programs alone"), "{refused}");
}

#[test]
fn a_smaller_scale_makes_shorter_refills_on_both_machines() {
    for machine in ["epyc-7w83", "xeon-8260-1n"] {
        let document = document(&[
            "--machine",
            machine,
            "--copies",
            "10",
            "--seeds",
            "1",
            "--set",
            "vm.pcp_batch_scale_max=5,0",
        ]);
        let mean = |run: usize| document.runs[run].latency["refill"].mean_ns;
        assert!(mean(1) * 2 < mean(0), "{machine}: {} -> {}", mean(0), mean(1));
    }
}

#[test]
fn several_machines_and_seeds_make_one_document() {
    let document = document(&[
        "--machine",
        "kvm-genoa-2c,xeon-8260-1n",
        "--seed",
        "7",
        "--set",
        "vm.pcp_batch_scale_max=5,0",
    ]);
    let told: Vec<(&str, &str, u64)> =
        document.runs.iter().map(|run| (run.machine.as_str(), run.variant.as_str(), run.seed)).collect();
    let mut expected = vec![];
    for machine in ["kvm-genoa-2c", "xeon-8260-1n"] {
        for variant in ["vm.pcp_batch_scale_max=5", "vm.pcp_batch_scale_max=0"] {
            expected.extend([7, 8, 9].map(|seed| (machine, variant, seed)));
        }
    }
    assert_eq!(told, expected);
    for run in &document.runs {
        assert_eq!(run.machine_digest, sim::Profile::load(&run.machine).unwrap().digest());
    }
    let mean = document
        .means
        .iter()
        .find(|mean| mean.machine == "kvm-genoa-2c" && mean.metric == "refill.mean_ns")
        .unwrap();
    let of_runs = document.runs[..3].iter().map(|run| {
        let refill = &run.latency["refill"];
        refill.total_ns as f64 / refill.count as f64
    });
    assert!((mean.mean - of_runs.sum::<f64>() / 3.0).abs() < 1e-6, "{mean:?}");
    assert!(mean.low.unwrap() <= mean.mean && mean.mean <= mean.high.unwrap() && mean.seeds == 3, "{mean:?}");
}

#[test]
fn the_verdict_has_intervals_or_says_that_it_has_none() {
    let words = ["--machine", "epyc-7w83", "--copies", "4", "--set", "vm.pcp_batch_scale_max=5,0"];
    let text = replay(&words);
    assert!(text.contains("vm.pcp_batch_scale_max=5 -> 0, 3 seeds\n") && text.contains('±'), "{text}");
    assert!(text.contains("\nto set: # vm.pcp_batch_scale_max=0: no mainline kernel has this"), "{text}");
    let text = replay(&[&words[..], &["--seeds", "1"]].concat());
    assert!(text.contains("one seed, so no interval") && !text.contains('±'), "{text}");
    // So few events make no difference, and there is nothing to write.
    let taken = ["--machine", "epyc-7w83", "--set", "vm.percpu_pagelist_high_fraction=0,8"];
    let text = replay(&taken);
    assert!(text.contains("  same: ") && !text.contains("to set:"), "{text}");
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/python-loop-128m.rec");
    let text = stdout(&[&["replay", recording, "--quiet"], &taken[..]].concat());
    assert!(text.contains("\nto set: echo 8 > /proc/sys/vm/percpu_pagelist_high_fraction"), "{text}");
}

#[test]
fn the_first_screen_has_fewer_than_150_words() {
    let set = "vm.pcp_batch_scale_max=5,0";
    for machine in ["epyc-7w83", "epyc-7w83,xeon-8260-1n"] {
        let words = ["--machine", machine, "--copies", "10", "--set", set];
        let text = replay(&words);
        let (lines, count) = (text.lines().count(), text.split_whitespace().count());
        assert!(count < 150 && lines < 16, "{count} words in {lines} lines:\n{text}");
        assert!(text.contains("better: ") && !text.contains("nsecs") && !text.contains("pgalloc"), "{text}");
    }
}

#[test]
fn full_leaves_out_rows_that_are_empty_everywhere() {
    let text =
        replay(&["--full", "--machine", "epyc-7w83", "--copies", "4", "--set", "vm.pcp_batch_scale_max=5,0"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" -> ") && line.contains('|')).collect();
    assert!(rows.len() > 5, "{text}");
    let counts = |row: &str| {
        row.split(" : ")
            .skip(1)
            .filter_map(|cell| cell.split_whitespace().next()?.parse::<u64>().ok())
            .sum::<u64>()
    };
    assert!(rows.iter().all(|row| counts(row) > 0), "{text}");
}

#[test]
fn the_account_shows_histograms_locks_and_how_sure_it_is() {
    let text =
        replay(&["--full", "--machine", "epyc-7w83", "--copies", "4", "--set", "vm.pcp_batch_scale_max=5,0"]);
    for part in [
        "± half of the 95 % interval of a mean over 3 seeds",
        "refill (rmqueue_bulk)",
        "nsecs               : count",
        "zone ",
        "pgalloc_normal",
        ": page lists under linux-6.18: ",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
}

#[test]
fn measurements_can_be_compared_and_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b, page) = (file("five.json"), file("zero.json"), file("page.html"));
    std::fs::write(&a, replay(&["--json", "--set", "vm.pcp_batch_scale_max=5"])).unwrap();
    std::fs::write(&b, replay(&["--json", "--set", "vm.pcp_batch_scale_max=0"])).unwrap();
    let table = stdout(&["compare", &a, &b, "--report", &page, "--quiet"]);
    assert!(table.contains("five") && table.contains("refill.mean_ns"), "{table}");
    let table = stdout(&["compare", &a, &b, "--table", "lkp"]);
    assert!(table.contains('%') && table.contains("refill.mean_ns"), "{table}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("</html>"));
}

#[test]
fn captures_and_traces_are_held_against_mm() {
    let file = |name: &str| format!("{}/../../conformance/{name}", env!("CARGO_MANIFEST_DIR"));
    let capture = file("linux-6.18-c2-4G.txt");
    let trace = file("traces/linux-6.18-c2-4G-one-task.csv.xz");
    let text = stdout(&["conform", &capture, &trace]);
    assert!(text.contains("2 files") && text.contains("0 disagreements"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&["conform", "--json", &capture])).unwrap();
    assert_eq!(json["files"][0]["compared"], json["files"][0]["equal"]);
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("changed.txt");
    let wrong = std::fs::read_to_string(&capture).unwrap().replace("high_min: 5211", "high_min: 5212");
    std::fs::write(&changed, wrong).unwrap();
    let output = freehold(&["conform", changed.to_str().unwrap()]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("kernel 5212, freehold 5211") && shown.contains("2 disagreements"), "{shown}");
}

#[test]
fn a_scene_tells_its_batches_of_reclaim() {
    let file = |name: &str| format!("{}/../../conformance/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = stdout(&["conform", "--trace", &file("scenes/deferred-split.txt.xz")]);
    let batches = text.lines().skip_while(|line| *line != "mark half-unmapped").skip(1);
    // The kernel's own, from the second on: half of each huge page goes, and the next is looked at with more effort.
    let first: Vec<&str> = batches.skip(1).take(2).collect();
    let batch = |priority| {
        format!(
            "program shrink_inactive inactive_anon scanned=512 taken=512 gone=256 active=0 priority={priority}"
        )
    };
    assert_eq!(first, [batch(8), batch(7)]);
    let scene = file("scenes/deferred-split.txt.xz");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["conform", "--trace", "--json", &scene])).unwrap();
    let rows = json["trace"].as_array().unwrap();
    assert!(rows.len() > 50 && rows[0]["event"] == "mark", "{json}");
    let csv = stdout(&["conform", "--trace", "--csv", &scene]);
    assert_eq!(csv.lines().count(), rows.len() + 1);
    assert!(csv.lines().next().is_some_and(|head| head.contains("scanned")), "{csv}");
    let output = freehold(&["conform", "--trace", &file("linux-6.18-c2-4G.txt")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no scene"));
}

#[test]
fn tables_list_what_there_is() {
    assert!(stdout(&["machines"]).contains("epyc-7w83"));
    assert!(stdout(&["machines", "show", "xeon-8260"]).contains("docs/machines.md#intel-cascade-lake"));
    assert!(stdout(&["knobs"]).contains("vm.pcp_batch_scale_max"));
    insta::assert_snapshot!(stdout(&["knobs", "show", "vm.pcp_batch_scale_max"]));
    for words in [["machines", "--json"], ["knobs", "--json"]] {
        let list: serde_json::Value = serde_json::from_str(&stdout(&words)).unwrap();
        assert!(list[words[0]].as_array().is_some_and(|list| list.len() > 3));
    }
}

#[test]
fn zonelists_are_shown_in_the_kernels_words() {
    let show = |words: &[&str]| stdout(&[&["machines", "show"], words].concat());
    insta::assert_snapshot!(show(&["xeon-8260", "--zonelists"]));
    insta::assert_snapshot!(show(&["xeon-8260", "--zonelists", "--policy", "linux-3.17"]));
    insta::assert_snapshot!(show(&["numa-32bit", "--zonelists", "--policy", "linux-3.17"]));
    insta::assert_snapshot!(show(&["numa-32bit", "--zonelists", "--policy", "linux-3.18"]));
    insta::assert_snapshot!(show(&["xeon-8260", "--zonelists", "--policy", "linux-4.13", "--order", "2"]));
    let json: serde_json::Value =
        serde_json::from_str(&show(&["xeon-8260", "--zonelists", "--json", "--policy", "linux-3.17"]))
            .unwrap();
    assert_eq!(json["order"], "Zone");
    assert_eq!(json["nodes"][1]["zones"][0], serde_json::json!([1, "Normal"]));
}

#[test]
fn a_machine_that_is_too_small_ends_with_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 40_000);
    let toml = folder.path().join("tiny.toml");
    let profile = "name = \"tiny\"\ntitle = \"64 MiB\"\nextends = \"kvm-genoa-2c\"\n[topology]\nsource = \"a test\"\n\
                   sockets = 1\ncores_per_socket = 2\nthreads_per_core = 1\ncores_per_llc = 2\n\
                   smt_numbering = \"adjacent\"\ndistances = [[10]]\n[[topology.nodes]]\nsocket = 0\n\
                   memory_mib = 64\n";
    std::fs::write(&toml, profile).unwrap();
    let output = freehold(&["replay", rec.to_str().unwrap(), "--machine", toml.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("failed allocations"));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(
        line.contains("freehold: fell short: ") && line.contains("take a machine with more of it"),
        "{line}"
    );
}

#[test]
fn a_change_that_was_never_reached_falls_short() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 1_000);
    let output = freehold(&[
        "replay",
        rec.to_str().unwrap(),
        "--quiet",
        MACHINE,
        "--at",
        "1000s:vm.pcp_batch_scale_max=0",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(
        line.starts_with("freehold: fell short: a change of --at was never reached")
            && line.lines().count() == 1
    );
}

#[test]
fn values_are_written_as_the_kernel_takes_them() {
    let text = replay(&["--full", "--force", "--set", "transparent_hugepage.enabled=madvise,always"]);
    for part in [
        "transparent_hugepage.enabled=madvise -> transparent_hugepage.enabled=always",
        "  echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n",
        "  echo always > /sys/kernel/mm/transparent_hugepage/enabled\n",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let text = replay(&["--set", "vm.pcp_batch_scale_max=5,0"]);
    assert!(text.contains("\nto set: # vm.pcp_batch_scale_max=0: no mainline kernel has this"), "{text}");
    let shown = stdout(&["knobs", "show", "vm.swappiness", "10"]);
    assert!(shown.contains("  to set   echo 10 > /proc/sys/vm/swappiness\n"), "{shown}");
    let held = std::fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    assert!(shown.contains(&format!("  here     {held}")), "{shown}");
    // A line for each of a few words; one for all of many.
    let lines = |knob| stdout(&["knobs", "show", knob]).matches("echo ").count();
    assert_eq!((lines("transparent_hugepage.enabled"), lines("lru_gen.enabled")), (3, 1));
}

#[test]
fn every_output_says_what_a_knob_did() {
    let words = ["--force", "--set", "vm.swappiness=0", "--set", "vm.min_free_kbytes=8192"];
    let forced = "vm.swappiness: forced, it cannot act here; never consulted: the recording has";
    let text = replay(&words);
    assert!(text.contains(&format!("\nno effect: {forced}")), "{text}");
    assert!(!text.contains("to set:") && !text.contains("freehold apply"), "for nothing: {text}");
    let text = replay(&[&["--full"][..], &words].concat());
    assert!(text.contains("what the knobs did") && text.contains(forced), "{text}");
    let document: serde_json::Value =
        serde_json::from_str(&replay(&[&["--json"][..], &words].concat())).unwrap();
    let uses = &document["runs"][0]["knob_uses"];
    assert_eq!(uses["vm.swappiness"]["outcome"], "refused-but-forced");
    let free = &uses["vm.min_free_kbytes"];
    assert_eq!((free["outcome"].as_str(), free["differed"].as_u64()), (Some("consulted"), Some(0)));
    assert!(free["consulted"].as_u64() > Some(0), "{free}");
    assert!(free["nearest"].as_str().unwrap().starts_with("a zone's free memory never came below"), "{free}");
}

#[test]
fn this_machine_becomes_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = stdout(&["machines", "probe", "--quiet", "-o", file.to_str().unwrap()]);
    assert!(text.starts_with("mine\n") && text.contains("dram.local_ns"), "{text}");
    assert!(stdout(&["machines", "show", file.to_str().unwrap()]).contains("not measured here"));
    let no_toml = common::refusal(&["machines", "probe", "-o", "profile.txt"]);
    assert_eq!(no_toml, "freehold: profile.txt: a profile's name ends in .toml\n");
}

#[test]
fn a_programs_pages_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sleep.toml");
    let words =
        ["heat", "--rounds", "1", "--json", "-o", file.to_str().unwrap(), "--title", "it sleeps", "--"];
    let output = freehold(&[&words[..], &["sleep", "60"]].concat());
    if output.status.code() == Some(2) {
        // Another kernel, or not for us to look at.
        assert!(String::from_utf8_lossy(&output.stderr).contains("clear_refs"), "{output:?}");
        return;
    }
    assert_eq!(output.stdout, b"", "it is the command's");
    let json: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&json["process"], &json["rounds"]), (&"sleep".into(), &1.into()));
    assert!(json["all"]["mib"].as_f64().is_some_and(|mib| mib > 0.5), "{json}");
    let toml = std::fs::read_to_string(&file).unwrap();
    assert!(toml.starts_with("# command  sleep 60\n") && toml.contains("title = \"it sleeps\""), "{toml}");
    assert_eq!(toml.matches("[[region]]").count(), json["region"].as_array().unwrap().len());
}

#[test]
fn policies_contend_on_this_machine() {
    let words = ["bench", "contention", "--rounds", "1", "--slice-ms", "1", "--threads", "2", "--quiet"];
    let some = ["--policy", "linux-6.18", "--policy", "freehold", "--set", "vm.pcp_batch_scale_max=5,0"];
    let document = Document::from_json(&stdout(&[&words[..], &some, &["--json"]].concat())).unwrap();
    assert_eq!(document.runs.len(), 8, "two policies, two values, one thread and two");
    assert!(document.runs.iter().all(|run| run.throughput.pages_per_second > 0.0));
    let text = stdout(&[&words[..], &some[..2]].concat());
    for part in ["1 thread, ", "2 threads, ", "pages allocated", "refill", "zone", "exact: measured"] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let wrong = common::refusal(&["bench", "contention", "--policy", "linux-6.18+yeild"]);
    assert!(wrong.contains("linux-6.18+yield"), "{wrong}");
    common::refusal(&["bench", "contention", "--threads", "0"]);
    let cannot = [&words[..], &["--policy", "linux-6.18", "--set", "vm.swappiness=10"]].concat();
    let refused = common::refusal(&cannot);
    let why =
        "vm.swappiness cannot act here: the workload has no address spaces; --force measures it all the same";
    assert!(refused.contains(why), "{refused}");
    let forced = Document::from_json(&stdout(&[&cannot[..], &["--force", "--json"]].concat())).unwrap();
    assert!(forced.notes[0].contains("by force: vm.swappiness cannot act here"), "{:?}", forced.notes);
    let uses = &forced.runs[0].knob_uses["vm.swappiness"];
    assert_eq!(uses.outcome, lab::measurements::KnobOutcome::RefusedButForced);
}

#[test]
fn threads_that_find_no_page_are_told_of() {
    let words = ["bench", "contention", "--rounds", "1", "--slice-ms", "1", "--threads", "1", "--policy"];
    let set = ["linux-6.18", "--set", "vm.min_free_kbytes=8388608", "--quiet"];
    let output = common::freehold(&[&words[..], &set].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("requests of threads found no page, in all runs"), "{said}");
}

#[test]
fn an_experiment_whose_knob_cannot_act_runs_by_force_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.toml");
    let text = "name = 'forced'\ntitle = 't'\nabout = 'a'\nsource = 's'\nmachine = 'kvm-genoa-2c'\n\
                run_ms = 1\nseeds = 1\n\
                [workload]\nkind = 'alloc-loop'\ntasks = 1\nblocks = 9\n\
                [[variant]]\nname = 'v'\nknobs = { 'vm.swappiness' = 10 }\n";
    std::fs::write(&file, text).unwrap();
    let words = ["lab", "run", file.to_str().unwrap(), "--quiet"];
    let refused = common::refusal(&words);
    let why =
        "vm.swappiness cannot act here: the workload has no address spaces; --force runs it all the same";
    assert!(refused.contains(why), "{refused}");
    let text = stdout(&[&words[..], &["--force"]].concat());
    assert!(text.contains("forced, variant v: by force: vm.swappiness cannot act here"), "{text}");
    let document = Document::from_json(&stdout(&[&words[..], &["--force", "--json"]].concat())).unwrap();
    let uses = &document.runs[0].knob_uses["vm.swappiness"];
    assert_eq!(uses.outcome, lab::measurements::KnobOutcome::RefusedButForced);
}

#[test]
fn the_fault_loop_runs_its_tasks_as_processes() {
    let text = stdout(&["fault-loop", "--memory", "shared", "--mib", "4", "--ms", "5", "--tasks", "2"]);
    let tasks: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tasks.len(), 2);
    for task in tasks {
        assert_eq!(task["pages"], 1024);
        assert!(!task["cpu_ns"].as_array().unwrap().is_empty());
    }
}
