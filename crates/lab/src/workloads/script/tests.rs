//! What scripts do on the simulated machine.

use mm::{Knob, Nanos};
use sim::Profile;

use crate::measurements::Run;
use crate::scene::{Phase, Scene, perform};

/// A run of a second of simulated time on two CPUs, under these knobs.
fn ran(policy: &str, knobs: &[(Knob, u64)], workload: &str) -> Run {
    let profile = Profile::load("kvm-genoa-2c").unwrap().to_toml();
    // 1 GiB will do.
    let profile =
        Profile::parse("small", &profile.replace("memory_mib = 24576", "memory_mib = 1024")).unwrap();
    let scene = Scene::of(profile, policy, &format!("kind = 'script'\n{workload}"), Nanos(1_000_000_000));
    let scene = Scene { knobs: knobs.to_vec(), phases: vec![Phase::only(Nanos(1_000_000_000))], ..scene };
    perform(&scene).unwrap_or_else(|error| panic!("{error}")).pop().unwrap().run
}

fn text(lines: &str) -> String {
    format!("text = '''\n{lines}\n'''\n")
}

fn sample(run: &Run, name: &str) -> f64 {
    let samples = run.samples.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", run.samples));
    assert_eq!(samples.len(), 1, "{name}: {samples:?}");
    samples[0]
}

/// The same of something that is counted.
fn count(run: &Run, name: &str) -> u64 {
    sample(run, name) as u64
}

#[test]
fn first_touches_take_faults_and_second_ones_a_cache_line() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "map a 4M nohuge\ntime first\ntouch a\nend\ntime second\ntouch a\nend\ncompute 1000000\nmark all self.rss self.faults a.rss",
        ),
    );
    let (first, second) = (sample(&run, "first") / 1024.0, sample(&run, "second") / 1024.0);
    assert!((400.0..4000.0).contains(&first), "{first} ns a fault");
    assert!(second > 0.5 && second < first / 5.0, "{second} ns an access");
    assert!(sample(&run, "all") > 1e6 + 1024.0 * first);
    assert_eq!(["all.self.rss", "all.self.faults", "all.a.rss"].map(|name| count(&run, name)), [1024; 3]);
    assert_eq!((run.operations, run.counter("script_done"), run.counter("script_refused")), (2048, 1, 0));
}

#[test]
fn rounds_are_told_apart_and_next_goes_on() {
    let run = ran(
        "linux-6.12",
        &[],
        &text("map a 64K nohuge\nrepeat 4\ntouch a next 16K\nmark round-# a.rss\nend"),
    );
    let resident = [1, 2, 3, 4].map(|round| count(&run, &format!("round-{round}.a.rss")));
    assert_eq!(resident, [4, 8, 12, 16]);
}

#[test]
fn children_have_copies_and_are_waited_for() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "map a 400K nohuge\ntouch a\nmark before\nspawn\nsleep 5\ntouch a\nmark child self.faults\nend\nwait\nmark after self.faults",
        ),
    );
    assert!(sample(&run, "after") >= 5e6, "{}", sample(&run, "after"));
    assert_eq!(count(&run, "child.self.faults"), 100, "each page is copied once");
    assert_eq!(run.counter("script_done"), 2);
}

#[test]
fn what_is_read_comes_from_the_disk_once() {
    let knobs = [(Knob::LruGenEnabled, 0)];
    let run = ran(
        "linux-6.12",
        &knobs,
        &format!(
            "disk_mb_per_second = 100\n{}",
            text("file f 4M\ntime cold\nreadfile f\nend\ntime warm\nreadfile f\nend\nmark all f.cached")
        ),
    );
    let (cold, warm) = (sample(&run, "cold"), sample(&run, "warm"));
    assert!((40e6..60e6).contains(&cold), "4 MiB at 100 MB/s: {cold} ns");
    assert!(warm < cold / 20.0, "{warm}");
    assert_eq!(count(&run, "all.f.cached"), 1024);
}

#[test]
fn over_its_max_a_group_swaps_and_without_swap_somebody_goes() {
    let lines = "cgroup a\nlimit max 4M\nmap b 8M nohuge\ntouch b\nmark all b.swap group.oom_kill";
    let swaps = ran("linux-6.12", &[(Knob::ZramDisksize, 64 << 20)], &text(lines));
    let swapped = sample(&swaps, "all.b.swap");
    assert!((1024.0..1300.0).contains(&swapped), "{swapped}");
    assert_eq!((swaps.counter("script_killed"), count(&swaps, "all.group.oom_kill")), (0, 0));
    let dies = ran("linux-6.12", &[], &text(lines));
    assert_eq!((dies.counter("script_killed"), dies.counter("oom_kill")), (1, 1));
    assert!(!dies.samples.contains_key("all"));
}

/// The one that asks is the smaller one; it goes on when the other has gone.
#[test]
fn the_largest_of_a_full_group_goes() {
    let run = ran(
        "linux-6.12",
        &[],
        "[[program]]\nname = 'large'\ntext = '''\ncgroup a\nlimit max 8M\nmap b 6M nohuge\ntouch b\nsleep 400\n'''\n\
        [[program]]\nname = 'small'\ntext = '''\ncgroup a\nsleep 100\nmap b 4M nohuge\ntouch b\nmark small b.rss\n'''\n",
    );
    assert_eq!(count(&run, "small.b.rss"), 1024);
    assert_eq!((run.counter("script_killed"), run.counter("script_done")), (1, 1));
}

#[test]
fn who_goes_over_high_waits() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "cgroup a\nlimit high 16M\nmap b 20M nohuge\ntouch b to 15M\nmark under\ntouch b from 15M to 16700K\nmark over group.high_delay_ns",
        ),
    );
    assert!(sample(&run, "over") > 2.0 * sample(&run, "under"));
    assert!(sample(&run, "over.group.high_delay_ns") > 2e7);
}

#[test]
fn settings_act_when_they_are_made() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "mark before watermark_distance\nset vm.watermark_scale_factor 1000\nmark after watermark_distance nr_nothing",
        ),
    );
    let [before, after] =
        ["before", "after"].map(|label| sample(&run, &format!("{label}.watermark_distance")));
    assert!(after > 5.0 * before, "{before} {after}");
    assert_eq!(run.counter("script_refused"), 0);
}

/// Reads here and there for as long as that is to go on, each of which seeks; what is there by then needs no disk.
#[test]
fn reads_here_and_there_seek_for_as_long_as_they_are_to() {
    let run = ran(
        "linux-7.2",
        &[],
        &format!(
            "disk_seek_us = 2000\n{}",
            text(
                "file f 64M\nmark begun\nfor 100\nreadfile f rand 7\nend\nmark cold f.reads f.hits f.hits/f.reads f.reads/s\n\
                 readfile f\nmark all f.reads f.hits\nfor 10\nreadfile f rand 9\nend\nmark warm f.hits/f.reads f.reads/s f.cached/M",
            )
        ),
    );
    let reads = sample(&run, "cold.f.reads");
    assert!((40.0..60.0).contains(&reads), "{reads} reads of 2 ms and 27 us in 100 ms");
    assert!((100e6..105e6).contains(&sample(&run, "cold")), "{}", sample(&run, "cold"));
    let per_second = sample(&run, "cold.f.reads/s");
    assert!((per_second - reads * 1e9 / sample(&run, "cold")).abs() < 0.5, "{per_second}");
    assert!(sample(&run, "cold.f.hits/f.reads") < 10.0);
    assert_eq!(["warm.f.hits/f.reads", "warm.f.cached/M"].map(|name| count(&run, name)), [100, 64]);
    assert!((10e6..10.1e6).contains(&sample(&run, "warm")) && sample(&run, "warm.f.reads/s") > 100_000.0);
    assert_eq!(run.counter("script_done"), 1);
}

/// A loop of lines that take no time comes to its end, an inner one ends with the outer one, and what was to be timed and was cut short
/// is no sample.
#[test]
fn loops_end_in_time() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "for 5\nmark never\nend\nmark idle\nfor 20\nfor 500\ntime whole\nsleep 8\nend\nend\nend\nmark busy",
        ),
    );
    assert_eq!(run.samples["never"].len(), 5, "{:?}", run.samples);
    assert!((20e6..30e6).contains(&sample(&run, "busy")), "{}", sample(&run, "busy"));
    assert_eq!((run.samples["whole"].len(), run.counter("script_done")), (3, 1));
}

#[test]
fn pieces_of_a_region_are_locked() {
    let run = ran(
        "linux-6.12",
        &[],
        &text(
            "map a 8M nohuge\nlock a every 2M piece 1536K\nadvise a dontneed from 1536K every 2M piece 512K\nmark all a.rss node0.free/M node0.free",
        ),
    );
    assert_eq!(count(&run, "all.a.rss"), 4 * 384);
    assert!((sample(&run, "all.node0.free/M") - sample(&run, "all.node0.free") / 256.0).abs() < 0.01);
    assert_eq!((run.counter("script_done"), run.counter("script_refused")), (1, 0));
}

#[test]
fn what_cannot_be_read_is_told_by_the_program_and_its_line() {
    let refused = |workload: &str| {
        let table: toml::Table = format!("kind = 'script'\n{workload}").parse().unwrap();
        let spec: Result<crate::workloads::WorkloadSpec, _> = table.try_into();
        spec.map(drop).unwrap_err().message().to_owned()
    };
    assert!(
        refused("text = 'dance'")
            .starts_with("script of script: line 1: `dance` is no operation; there are map")
    );
    let two = "[[program]]\nname = 'b'\ntext = '''wait\nend'''\n";
    assert!(refused(two).starts_with("script of b: line 2: `end` ends nothing"));
    assert_eq!(refused(""), "a script is either `text` or a list of `program`, each with name and text");
}

/// Two programs of which one alone is more than memory; kswapd has that killed, and the other goes on.
#[test]
fn where_nothing_is_left_alone_for_long_enough_the_largest_goes() {
    let large = "map a 1200M nohuge\ntouch a\ntouch a read times 100";
    let small = "map b 16M nohuge\nrepeat 50\ntouch b\nsleep 1\nend";
    let both = format!(
        "[[program]]\nname = 'large'\ntext = \"\"\"{large}\"\"\"\n[[program]]\nname = 'small'\ntext = \"\"\"{small}\"\"\"\n"
    );
    let zram = [(Knob::ZramDisksize, 2 << 30), (Knob::OvercommitMemory, 1)];
    let run = |ttl_ms| ran("linux-6.18", &[&zram[..], &[(Knob::LruGenMinTtlMs, ttl_ms)]].concat(), &both);
    let (without, with) = (run(0), run(60_000));
    assert_eq!((without.counter("oom_kill"), without.counter("script_done")), (0, 1));
    assert_eq!(
        (with.counter("oom_kill"), with.counter("script_killed"), with.counter("script_done")),
        (1, 1, 1)
    );
}
