//! mm's /proc files have the kernel's layout: line by line as a stock kernel printed them of the same machine, numbers
//! apart. Scripts that read the kernel's read ours.

use freehold_lab::conform::Capture;
use mm::slab::kmalloc::KmallocKind;
use mm::slab::{CacheFlags, CacheId, CacheSpec};
use mm::{Bare, Cpu, Knobs, Mm, NodeSize, Policy, Request, Topology};

const CAPTURES: [&str; 3] = ["linux-6.18-c8-2n-8G+8G.txt", "linux-6.18-c2-4G.txt", "linux-6.18-c4-4n-2G.txt"];

fn capture(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(name);
    std::fs::read_to_string(path).expect("the captures come with the project")
}

fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| *line != format!("@@{name}")).skip(1);
    lines.take_while(|line| !line.starts_with("@@")).collect()
}

/// The same machine in mm, with some pages in use.
fn mm(text: &str) -> Mm<Bare> {
    let capture = Capture::parse(text).unwrap();
    let policy = Policy::linux(capture.version().unwrap());
    let mm = Mm::new(Bare::default(), capture.topology().unwrap(), policy, capture.knobs().unwrap()).unwrap();
    for cpu in 0..2 {
        mm.machine().set_cpu(Cpu(cpu));
        for _ in 0..500 {
            mm.alloc(Request::USER).unwrap();
            mm.alloc(Request::KERNEL).unwrap();
        }
    }
    mm
}

/// A line with every number as `#`, the spaces around it as one: columns are aligned by width, not by content.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut last = ' ';
    for character in line.chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if !(matches!(character, '#' | ' ') && character == last) {
            shape.push(character);
        }
        last = character;
    }
    shape
}

#[test]
fn tables_are_aligned_as_the_kernels() {
    for name in CAPTURES {
        let text = capture(name);
        let mm = mm(&text);
        for (section_name, ours) in
            [("buddyinfo", mm.views().buddyinfo()), ("pagetypeinfo", mm.views().pagetypeinfo())]
        {
            let theirs = section(&text, section_name);
            let ours: Vec<&str> = ours.lines().collect();
            assert_eq!(ours.len(), theirs.len(), "{name}, {section_name}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!(shape(ours), shape(theirs), "{name}, {section_name}");
                assert_eq!(ours.len(), theirs.len(), "{name}, {section_name}: {ours}");
            }
        }
    }
}

#[test]
fn zoneinfo_has_the_kernels_lines_in_the_kernels_order() {
    for name in CAPTURES {
        let text = capture(name);
        // Counters that mm does not keep, the Device zone and node statistics are missing; what is there is the same.
        let theirs: Vec<String> = section(&text, "zoneinfo").into_iter().map(indented_shape).collect();
        let zoneinfo = mm(&text).views().zoneinfo();
        let mut from = 0;
        for line in zoneinfo.lines() {
            let wanted = indented_shape(line);
            let found = theirs[from..].iter().position(|theirs| *theirs == wanted);
            from += found.unwrap_or_else(|| panic!("{name}: the kernel has no line like {line:?} here")) + 1;
        }
    }
}

/// The shape with its indentation, which tells zoneinfo's levels apart.
fn indented_shape(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    format!("{indent} {}", shape(line.trim_start()))
}

/// A cache of two CPUs with a full slab, one partly in use on each CPU, and free objects on a CPU's partial slab.
fn mm_with_slabs(policy: &str) -> (Mm<Bare>, CacheId) {
    let nodes = [NodeSize { bytes: 1 << 30, cpus: 1 }; 2];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10, 21], vec![21, 10]]).unwrap();
    let policy = Policy::parse(policy).unwrap();
    let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
    let spec = CacheSpec::new("vm_area_struct", 168).with(CacheFlags::ACCOUNTED).with_sheaves(32);
    let cache = mm.slabs().create_cache(spec).unwrap();
    mm.machine().set_cpu(Cpu(0));
    let objects: Vec<_> = (0..60).map(|_| mm.slabs().kmem_cache_alloc(cache).unwrap()).collect();
    mm.machine().set_cpu(Cpu(1));
    mm.slabs().kmem_cache_alloc(cache).unwrap();
    mm.slabs().kmem_cache_free(cache, objects[0]).unwrap();
    mm.slabs().kmem_cache_free(cache, objects[59]).unwrap();
    mm.slabs().kmalloc(KmallocKind::Normal, 100).unwrap();
    (mm, cache)
}

#[test]
fn slabinfo_is_in_the_kernels_columns() {
    let (mm, _) = mm_with_slabs("linux-6.12");
    insta::assert_snapshot!("slabinfo", mm.slabs().slabinfo());
    // As linux-6.18.44 printed it.
    let theirs = "vm_area_struct      1551   2016    192   21    1 : tunables    0    0    0 : slabdata     96     96      0";
    let slabinfo = mm.slabs().slabinfo();
    let ours = slabinfo.lines().find(|line| line.starts_with("vm_area_struct")).unwrap();
    assert_eq!((shape(ours), ours.len()), (shape(theirs), theirs.len()));
}

fn attributes(policy: &str) -> String {
    let (mm, cache) = mm_with_slabs(policy);
    let files = mm.slabs().slab_attributes(cache).unwrap();
    files.iter().fold(String::new(), |text, file| text + file.name + "=" + &file.value + "\n")
}

#[test]
fn the_files_of_a_cache() {
    insta::assert_snapshot!("slab_attributes", attributes("linux-6.12"));
}

#[test]
fn sheaves_have_files_where_there_are_any() {
    let count = |policy, name: &str| attributes(policy).lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(count("linux-6.12", "sheaf_capacity="), 0);
    assert_eq!(count("linux-6.18", "sheaf_capacity=32"), 1);
    assert_eq!(count("linux-7.2", "sheaf_capacity=60"), 1);
    assert_eq!(count("linux-6.12", "barn_"), 0);
    assert_eq!((count("linux-7.2", "barn_"), count("linux-7.2", "cpu_partial_")), (4, 0));
}

/// Every file that a kernel with SLUB_STATS printed of a cache is there, in the same form.
#[test]
fn the_kernels_files_are_ours() {
    let text = capture("traces/linux-6.12-knob-c2-1G-slab.txt");
    let ours = attributes("linux-6.12");
    for line in section(&text, "slab-after") {
        let (name, _) = line.split_once('=').unwrap();
        let ours = ours.lines().find(|ours| ours.split('=').next() == Some(name));
        // Two words that both change at once are never one word here.
        assert!(ours.is_some() || name == "cmpxchg_double_cpu_fail", "{name}");
    }
}
