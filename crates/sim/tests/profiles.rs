//! Machine profiles through their public door: the ones that come along, extending, and every way to be wrong.

use std::fs;
use std::path::PathBuf;

use mm::Cpu;
use proptest::prelude::*;
use sim::{Figure, FigureKind, Profile};

fn wrong(edit: impl Fn(String) -> String) -> String {
    let text = edit(Profile::load("xeon-8260").unwrap().to_toml());
    let error = Profile::parse("mine", &text).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    without_line(&error)
}

/// Which line it is moves with every figure that is added.
fn without_line(error: &str) -> String {
    let Some((before, rest)) = error.split_once(": line ") else { return error.to_owned() };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}{after}")
}

#[test]
fn what_is_wrong_has_its_line() {
    let of = |text: &str| Profile::parse("mine", text).unwrap_err().to_string();
    insta::assert_snapshot!(of("extends = 'kvm-genoa-2c'\n\n[cache]\nl1_ns = 4\n"), @"machine mine: line 4: cache.l1_ns must be { value, kind, source }: a bare integer has no source");
    insta::assert_snapshot!(of("extends = 'kvm-genoa-2c'\n[cache]\nl1ns = 4\n"), @"machine mine: line 3: cache.l1ns is not known (did you mean cache.l1_ns, cache.l2_ns, cache.l3_ns?)");
    insta::assert_snapshot!(of("extends = 'kvm-genoa-2c'\n[cashe]\nl1_ns = 4\n"), @"machine mine: line 3: cashe.l1_ns is not known (did you mean cache.l1_ns, cache.l2_ns, cache.l3_ns?)");
}

#[test]
fn all_that_is_missing_is_said_at_once() {
    let text = "extends = 'common'\n[topology]\nsockets = 1\nsource = 's'\n[[topology.nodes]]\nsocket = 0\n\
                [dram]\nlocal_ns = { value = 80.0 }\n";
    let error = Profile::parse("mine", text).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in [
        "machine mine: is not complete: ",
        "cache is missing: l1_bytes, l2_bytes,",
        "dram (line 7) lacks remote_ns",
        "dram.local_ns (line 8) lacks kind, source",
        "topology (line 2) lacks cores_per_socket, threads_per_core, cores_per_llc, smt_numbering, distances",
        "topology.nodes (line 5) lacks memory_mib",
    ] {
        assert!(error.contains(part), "{part} is missing from {error}");
    }
}

#[test]
fn all_that_come_along_load_and_survive_being_written() {
    let names: Vec<_> = Profile::builtin_names().collect();
    assert!(names.is_sorted() && names.contains(&"kvm-genoa-2c") && !names.contains(&"common"), "{names:?}");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines")).unwrap();
    let files =
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "toml"));
    assert_eq!(names.len() + 1, files.count(), "every file of machines/ comes along, common as a base only");
    for name in names {
        let profile = Profile::load(name).unwrap();
        assert_eq!(profile.name(), name);
        assert_eq!(Profile::parse(name, &profile.to_toml()).unwrap(), profile);
        assert_eq!(profile.figures().count(), sim::profile::FIGURES.len());
    }
}

#[test]
fn machines_are_what_their_titles_say() {
    let of = |name: &str| {
        let profile = Profile::load(name).unwrap();
        let topology = profile.topology();
        let gib = |pages: u64| pages >> 18;
        let present =
            |node: &mm::NodeSpec| node.zones.iter().map(|zone| u64::from(zone.present)).sum::<u64>();
        let nodes: Vec<u64> = topology.nodes.iter().map(|node| gib(present(node) + 1)).collect();
        (topology.cpus.len(), nodes, profile.default_cpus().len(), topology.cpus[0].cache_slice >> 10)
    };
    assert_eq!(of("epyc-7w83"), (128, vec![256], 128, 2048));
    assert_eq!(of("xeon-8260"), (96, vec![192, 192], 96, 762));
    assert_eq!(of("xeon-8260-1n"), (96, vec![192, 192], 48, 762));
    assert_eq!(of("epyc-7742"), (128, vec![256], 128, 2048));
    assert_eq!(of("epyc-9654"), (192, vec![384], 192, 2048));
    assert_eq!(of("xeon-spr").0, 224);
    assert_eq!(of("xeon-icx").0, 128);
    assert_eq!(of("kvm-genoa-2c"), (2, vec![24], 2, 16384));
    assert_eq!(of("numa-32bit"), (16, vec![4, 4, 4, 4], 16, 1024));
    assert_eq!(of("westmere-ex"), (48, vec![16; 4], 48, 1536));
    assert_eq!(of("epyc-2s-4n").1, [32; 4]);
    let node0 = Profile::load("xeon-8260-1n").unwrap().default_cpus();
    assert!(node0.contains(&Cpu(48)) && !node0.contains(&Cpu(24)), "threads 48 to 71 are on node 0");
}

#[test]
fn unknown_names_get_the_nearest() {
    let of = |name: &str| Profile::load(name).unwrap_err().to_string();
    insta::assert_snapshot!(of("epyc-7w38"), @"machine epyc-7w38: there is no such profile (did you mean epyc-7w83, epyc-7742, epyc-7763?); a file is named by its path");
    insta::assert_snapshot!(of("xeon"), @"machine xeon: there is no such profile (did you mean xeon-94g, xeon-icx, xeon-snb?); a file is named by its path");
    insta::assert_snapshot!(of("sparc"), @"machine sparc: there is no such profile; there are coffee-lake, comet-lake, epyc-2s-4n, epyc-2s-512, epyc-512-cxl, epyc-7742, epyc-7763, epyc-7w83, epyc-9654, kvm-8c-6g, kvm-genoa-2c, numa-32bit, skylake-1s, westmere-ex, xeon-140g, xeon-5320, xeon-80-1t, xeon-8260, xeon-8260-1n, xeon-94g, xeon-icx, xeon-snb, xeon-snb-32g, xeon-spr; a file is named by its path");
    insta::assert_snapshot!(of("host"), @"machine host: the profile of that name is called kvm-genoa-2c now; the machine at hand is `--machine this`");
    insta::assert_snapshot!(of("common"), @"machine common: has no [topology], so it is no machine but a base for others");
    assert!(of("no/such.toml").starts_with("machine no/such.toml: cannot be read: "));
}

#[test]
fn a_spread_is_kept_and_must_rise() {
    let lock = "lock_ns = { value = 5.0, kind = \"measured\", source = \"a test\", spread =";
    let text = |spread: &str| format!("extends = \"kvm-genoa-2c\"\n[cpu]\n{lock} {spread} }}");
    let good = "{ min = 4.0, p25 = 4.5, p75 = 5, max = 90.5, samples = 7 }";
    let profile = Profile::parse("mine", &text(good)).unwrap();
    assert_eq!(Profile::parse("mine", &profile.to_toml()).unwrap(), profile);
    let lock = profile.figures().find(|(spec, _)| spec.key == "cpu.lock_ns").unwrap().1;
    assert_eq!(lock.spread.unwrap().samples, 7);
    let wrong = |spread: &str| without_line(&Profile::parse("mine", &text(spread)).unwrap_err().to_string());
    let falls = good.replace("4.5", "6.5");
    insta::assert_snapshot!(wrong(&falls), @"machine mine: cpu.lock_ns: spread must rise from min to max and be of one sample at least");
    insta::assert_snapshot!(wrong("{ min = 4.0 }"), @"machine mine: cpu.lock_ns: spread p25 is missing");
    insta::assert_snapshot!(wrong("3.0"), @"machine mine: cpu.lock_ns: spread must be { min, p25, p75, max, samples }");
}

#[test]
fn wrong_figures_are_named() {
    let replace = |from: &'static str, to: &'static str| {
        wrong(move |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        })
    };
    insta::assert_snapshot!(replace("l1_ns = { value = 1.4", "l1_ns = { value = 0"), @"machine mine: cache.l1_ns is 0; 0.1 to 100 are possible");
    insta::assert_snapshot!(replace("l1_ns = { value = 1.4", "l1_ns = { value = -3"), @"machine mine: cache.l1_ns is -3; 0.1 to 100 are possible");
    insta::assert_snapshot!(replace("l1_ns = { value = 1.4", "l1_ns = { value = nan"), @"machine mine: cache.l1_ns is NaN; 0.1 to 100 are possible");
    insta::assert_snapshot!(replace("l1_ns = { value = 1.4", "l1_ns = { value = 90"), @"machine mine: cache.l1_ns is 90, more than cache.l2_ns, which is 4.7");
    insta::assert_snapshot!(replace("l1_ns = { value = 1.4", "l1_ns = { value = 'fast'"), @"machine mine: cache.l1_ns: value must be a number, not string");
    insta::assert_snapshot!(replace("l1_ns", "l1_latency_ns"), @"machine mine: cache.l1_latency_ns is not known");
    insta::assert_snapshot!(replace("[prefetch]", "[prefetch]\noverlap = 1"), @"machine mine: prefetch.overlap is not known (did you mean prefetch.overlap_ratio?)");
    insta::assert_snapshot!(replace("local_ns = { value = 80.8, kind = \"published\"", "local_ns = { value = 80.8, kind = \"guessed\""), @r#"machine mine: dram.local_ns: kind is "guessed", not one of measured, published, fitted, counted, estimated"#);
    insta::assert_snapshot!(replace("local_ns = {", "local_ns = 5 #"), @"machine mine: dram.local_ns must be { value, kind, source }: a bare integer has no source");
    insta::assert_snapshot!(replace("[dram]", "[dram"), @"machine mine: unclosed table, expected `]`");
    insta::assert_snapshot!(wrong(|_| "extends = 'xeon-8260'\n[cache]\nl1_ns = { value = 1.0, kind = 'estimated' }".into()), @"machine mine: cache.l1_ns: source is missing");
}

#[test]
fn impossible_machines_are_refused() {
    let replace = |from: &'static str, to: &'static str| {
        wrong(move |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        })
    };
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 0"), @"machine mine: topology.sockets is 0; 1 to 1024 are possible");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 1"), @"machine mine: node 1 is on socket 1, of 1");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 3"), @"machine mine: socket 2 has no node that its CPUs belong to");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 64"), @"machine mine: topology has 3072 CPUs; 1024 are possible");
    insta::assert_snapshot!(replace("cores_per_llc = 24", "cores_per_llc = 32"), @"machine mine: topology.cores_per_llc is 32, more than the 24 cores of a socket");
    insta::assert_snapshot!(replace("smt_numbering = \"split\"", "smt_numbering = \"odd\""), @r#"machine mine: topology.smt_numbering is "odd", not "split" or "adjacent""#);
    insta::assert_snapshot!(replace("[[10, 21], [21, 10]]", "[[10, 21]]"), @"machine mine: the distance table is not 2 by 2");
    insta::assert_snapshot!(wrong(|text| text.replace("memory_mib = 196608", "memory_mib = 0")), @"machine mine: no node has memory");
    insta::assert_snapshot!(replace("memory_mib = 196608", "memory_mib = -1"), @"machine mine: topology.nodes memory_mib is -1, less than 0");
    insta::assert_snapshot!(replace("memory_mib = 196608", "memory_mib = 99999999999"), @"machine mine: node 0 has 99999999999 MiB; up to 16 TiB can be described");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 2\ncpuset_nodes = [7]"), @"machine mine: topology.cpuset_nodes names a node above 1");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 2\nlow_end_mib = 8192"), @"machine mine: topology.low_end_mib is 8192; 16 to 4096 are possible");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 2\nword_bits = 16"), @"machine mine: topology.word_bits is 16; there are 32 and 64");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 2\nword_bits = 32"), @"machine mine: node 0: memory ends above 64 GiB, which is all that PAE reaches");
    insta::assert_snapshot!(replace("sockets = 2", "sockets = 2\ncoolers = 2"), @"machine mine: topology.coolers is not known");
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("freehold-sim-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn profiles_extend_one_another() {
    let folder = Folder::new("extend");
    folder.write("fast.toml", "extends = 'xeon-8260'\ntitle = 'fast'\n[dram]\nlocal_ns = { value = 70, kind = 'fitted', source = 'here' }");
    let top = folder.write(
        "top.toml",
        "extends = 'fast.toml'\n[cache]\nl1_ns = { value = 1, kind = 'estimated', source = 'x' }",
    );
    let profile = Profile::load(&top).unwrap();
    assert_eq!(
        (profile.title(), profile.value("dram.local_ns"), profile.value("cache.l1_ns")),
        ("fast", 70.0, 1.0)
    );
    assert_eq!(profile.value("dram.remote_ns").to_string(), "140.4");

    folder.write("a.toml", "extends = 'b.toml'");
    let a = folder.write("b.toml", "extends = 'a.toml'");
    let error = Profile::load(&a).unwrap_err().to_string().replace(&folder.0.display().to_string(), "DIR");
    insta::assert_snapshot!(error, @"machine DIR/b.toml: extends itself: DIR/b.toml extends DIR/a.toml extends DIR/b.toml");

    let error = Profile::parse("text", "extends = 'a.toml'").unwrap_err();
    insta::assert_snapshot!(error, @"machine text: extends the file a.toml; it can extend a machine that comes with the program");
    let error = Profile::parse("text", "extends = ['kvm-genoa-2c']").unwrap_err();
    insta::assert_snapshot!(error, @"machine text: extends must be the name of a profile, as a string");
}

#[test]
fn a_fit_changes_a_figure_and_nothing_else() {
    let mut profile = Profile::load("kvm-genoa-2c").unwrap();
    let figure = |value| Figure::new(value, FigureKind::Fitted, "a test");
    profile.set("prefetch.overlap_ratio", figure(0.25)).unwrap();
    assert_eq!(profile.value("prefetch.overlap_ratio").to_string(), "0.25");
    let before = profile.clone();
    insta::assert_snapshot!(profile.set("prefetch.overlap_ratio", figure(7.0)).unwrap_err(), @"machine kvm-genoa-2c: prefetch.overlap_ratio is 7; 0.01 to 1 are possible");
    insta::assert_snapshot!(profile.set("overlap", figure(0.5)).unwrap_err(), @"machine kvm-genoa-2c: overlap is not known");
    insta::assert_snapshot!(profile.set("dram.local_ns", figure(1000.0)).unwrap_err(), @"machine kvm-genoa-2c: dram.local_ns is 1000, more than dram.remote_ns, which is 210");
    assert_eq!(profile, before);
}

proptest! {
    #[test]
    fn damaged_profiles_never_panic(at in 0usize..6000, with in "[a-z0-9=\\[\\]{}\"'.\n-]{0,8}", cut in 0usize..40) {
        let mut text = Profile::load("xeon-8260").unwrap().to_toml();
        let start = at.min(text.len());
        if let (true, end) = (text.is_char_boundary(start), (start + cut).min(text.len())) {
            if text.is_char_boundary(end) {
                text.replace_range(start..end, &with);
            }
        }
        if let Err(error) = Profile::parse("damaged", &text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn the_2014_box_has_three_gib_below_four() {
    let topology = Profile::load("westmere-ex").unwrap().topology();
    let zones = |node: usize| -> Vec<_> {
        topology.nodes[node].zones.iter().map(|zone| (zone.kind.name(), zone.present >> 18)).collect()
    };
    assert_eq!(zones(0), [("DMA", 0), ("DMA32", 2), ("Normal", 13)]);
    assert_eq!(topology.nodes[0].zones[1].present, (3 << 18) - 4096);
    assert_eq!(zones(3), [("Normal", 16)]);
}
