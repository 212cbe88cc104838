//! Costs that follow from what kernels execute, counted, and from the few figures that all machines share.

use sim::{Figure, FigureKind, Profile};
use toml::Table;

fn table(text: &str) -> Table {
    text.parse().unwrap()
}

fn number(value: &toml::Value) -> f64 {
    value.as_float().or(value.as_integer().map(|whole| whole as f64)).unwrap()
}

/// Instructions of a path's lean build: of a call, and of each page.
fn counted(path: &str) -> Vec<f64> {
    let counts = table(include_str!("../../../machines/paths/counts.toml"));
    let found = counts["path"].as_array().unwrap().iter().find(|entry| entry["name"].as_str() == Some(path));
    found.unwrap()["instructions"]["linux-6.12-lean"].as_array().unwrap().iter().map(number).collect()
}

fn model(section: &str, key: &str) -> f64 {
    number(&table(include_str!("../../../machines/common.toml"))[section][key]["value"])
}

fn figure(profile: &Profile, key: &str) -> Figure {
    profile.figures().find(|(spec, _)| spec.key == key).unwrap().1.clone()
}

/// Which cores there are: what their files say of clock and pace.
const CORES: [(&str, f64, f64); 4] =
    [("xeon-8260", 3.9, 1.0), ("xeon-icx", 3.4, 2.1), ("xeon-5320", 2.2, 2.1), ("xeon-spr", 3.8, 1.4)];

#[test]
fn paths_take_the_instructions_counted_at_the_cores_pace() {
    for (machine, clock, ratio) in CORES {
        let profile = Profile::load(machine).unwrap();
        let list = model("model", "list_ipc") * ratio * clock;
        let fault = model("model", "fault_ipc") * ratio * clock;
        let call = |path: &str| counted(path)[0];
        let told = (counted("refill")[1] + counted("drain")[1]) / 24.0;
        let expected = [
            ("path.page_alloc_ns", (call("page-alloc") - 5.0 * told) / list),
            ("path.page_free_ns", (call("page-free") - 5.0 * told) / list),
            ("path.slab_alloc_ns", (call("slab-alloc") - 2.0 * told) / list),
            ("path.slab_free_ns", (call("slab-free") - 2.0 * told) / list),
            ("path.lru_add_ns", call("lru-add") / list),
            ("path.unmap_ns", call("munmap") * 2.0 / 3.0 / list),
            ("path.truncate_ns", call("truncate") * 2.0 / 3.0 / list),
            ("path.fault_ns", (call("fault") - call("page-alloc")) / fault),
            (
                "path.shared_fault_ns",
                (call("fault") - call("page-alloc")) / fault + (call("shared-fault") - call("fault")) / list,
            ),
            ("cpu.touch_ns", (told / list - profile.value("cache.l1_ns")).max(0.0)),
        ];
        let start = model("model", "start_ns");
        for (key, expected) in [("path.refill_ns", call("refill")), ("path.drain_ns", call("drain"))] {
            let Figure { value, kind, .. } = figure(&profile, key);
            assert!((value - expected / list - start).abs() < 0.001, "{machine}: {key} is {value}");
            assert_eq!(kind, FigureKind::Fitted, "{machine}: {key}");
        }
        for (key, expected) in expected {
            let Figure { value, kind, source, .. } = figure(&profile, key);
            assert!(
                (value - expected).abs() < 0.001,
                "{machine}: {key} is {value}, counts make it {expected}"
            );
            assert_eq!(kind, FigureKind::Counted, "{machine}: {key}");
            assert!(
                source.contains("linux-6.12-lean") && source.contains("GHz"),
                "{machine}: {key}: {source}"
            );
        }
    }
}

#[test]
fn a_lock_goes_over_in_so_many_ways_of_its_line() {
    for (machine, ways, kind) in [
        ("xeon-icx", model("model", "handover_transfers"), FigureKind::Estimated),
        ("xeon-spr", 3.5, FigureKind::Fitted),
    ] {
        let profile = Profile::load(machine).unwrap();
        for way in ["smt_ns", "same_llc_ns", "same_socket_ns", "cross_socket_ns"] {
            let handover = figure(&profile, &format!("handover.{way}"));
            let transfer = profile.value(&format!("transfer.{way}"));
            assert!((handover.value - ways * transfer).abs() < 0.001, "{machine}: {way}: {}", handover.value);
            assert_eq!(handover.kind, kind);
        }
    }
}

#[test]
fn what_a_profile_says_itself_is_left() {
    let text =
        "extends = 'xeon-8260'\n[path]\nfault_ns = { value = 5.0, kind = 'measured', source = 'here' }\n";
    let mine = Profile::parse("mine", text).unwrap();
    assert_eq!(
        (mine.value("path.fault_ns"), figure(&mine, "path.fault_ns").kind),
        (5.0, FigureKind::Measured)
    );
    let stock = Profile::load("xeon-8260").unwrap();
    assert_eq!(figure(&mine, "path.unmap_ns"), figure(&stock, "path.unmap_ns"));
}

#[test]
fn an_exception_is_its_share_of_a_fault_until_somebody_measures_it() {
    let mine = |path: &str| {
        let text = format!(
            "extends = 'kvm-genoa-2c'\n[path]\nfault_ns = {{ value = 1000.0, kind = 'measured', source = 'here' }}\n{path}"
        );
        let profile = Profile::parse("mine", &text).unwrap();
        assert_eq!(figure(&profile, "path.exception_ns").kind, FigureKind::Measured);
        profile.value("path.exception_ns")
    };
    let [whole, served] = ["fault", "fault-served"].map(|path| counted(path)[0]);
    assert!((mine("") - 1000.0 * (whole - served) / whole).abs() < 0.001);
    let measured = "exception_ns = { value = 300.0, kind = 'measured', source = 'here' }\n";
    assert!((mine(measured) - 300.0).abs() < 0.001);
}

#[test]
fn a_faster_core_is_faster_in_proportion() {
    let clock = |ghz: f64| {
        let text = format!(
            "extends = 'xeon-8260'\n[core]\nclock_ghz = {{ value = {ghz}, kind = 'estimated', source = 'a test' }}\n"
        );
        Profile::parse("mine", &text).unwrap().value("path.fault_ns")
    };
    assert!((clock(2.0) / clock(4.0) - 2.0).abs() < 0.001);
}

#[test]
fn a_core_that_is_half_told_is_refused() {
    let wrong = |core: &str| {
        let text = format!("extends = 'common'\n[core]\n{core}\n");
        Profile::parse("mine", &text).unwrap_err().to_string()
    };
    let clock = "clock_ghz = { value = 3.0, kind = 'estimated', source = 'a test' }";
    assert!(wrong(clock).contains("core.ipc_ratio is missing"), "{}", wrong(clock));
    let misspelt = clock.replace("clock_ghz", "clok_ghz");
    assert!(
        wrong(&misspelt).contains("core.clok_ghz is not known (did you mean core.clock_ghz?)"),
        "{}",
        wrong(&misspelt)
    );
    let absurd = clock.replace("3.0", "3000.0");
    assert!(wrong(&absurd).contains("core.clock_ghz is 3000; 0.1 to 20 are possible"), "{}", wrong(&absurd));
}

/// The page names each figure as `key = value`.
#[test]
fn the_page_of_costs_has_the_figures_that_machines_share() {
    let page = include_str!("../../../docs/costs.md");
    let icx = table(include_str!("../../../machines/xeon-icx.toml"));
    for (name, value) in [
        ("list_ipc", model("model", "list_ipc")),
        ("fault_ipc", model("model", "fault_ipc")),
        ("overlap_ratio", model("prefetch", "overlap_ratio")),
        ("ratio sunny-cove", number(&icx["core"]["ipc_ratio"]["value"])),
        ("start_ns", model("model", "start_ns")),
    ] {
        let row = format!("| `{name}` | {value} |");
        assert!(page.contains(&row), "docs/costs.md lacks {row}: make fit");
    }
}
