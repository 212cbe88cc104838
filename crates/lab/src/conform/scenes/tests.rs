//! Programs that no kernel was asked about: what they come to follows from the language.

use std::collections::BTreeMap;
use std::path::Path;

use mm::{Bare, Knobs, Mm, NodeSize, Policy, Topology};
use proptest::prelude::*;

use super::seen::Marks;
use super::*;
use crate::conform::unpack;

/// One of 64 MiB with a CPU, on which nothing was done yet.
pub(super) fn machine() -> Mm<Bare> {
    let topology = Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
    let policy = Policy::parse("linux-6.12").unwrap();
    Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap()
}

fn capture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenes");
    unpack(std::fs::read(folder.join(format!("{name}.txt.xz"))).unwrap()).unwrap()
}

/// The capture `name` as if its program had been `program`, of whose lines nothing is known.
fn instead(name: &str, program: &str) -> String {
    let text = capture(name);
    let (head, rest) = text.split_once("@@scene\n").unwrap();
    let (scene, rest) = rest.split_once("@@uname").unwrap();
    let machine = scene.lines().find(|line| line.starts_with("machine")).unwrap();
    let (rest, _) = rest.split_once("@@log").unwrap();
    format!("{head}@@scene\n{machine}\n{program}\n@@uname{rest}@@log\n")
}

fn play_on(name: &str, program: &str) -> Marks {
    let text = instead(name, program);
    let sections = Sections::of(&text);
    let program = program::parse(&sections.need("scene").unwrap().lines);
    let machine = machine::Played::new(&sections, &program).unwrap();
    play::play(machine, clock::Clock::new(&sections, BTreeMap::default()), program, 400_000).unwrap()
}

/// On a machine of 512 MiB.
fn play(program: &str) -> Marks {
    play_on("thp-stride-never", program)
}

fn labels(marks: &Marks) -> Vec<&str> {
    marks.seen.iter().map(|seen| &*seen.label).collect()
}

/// Pages of a region at a mark.
fn pages(marks: &Marks, label: &str, region: &str, what: &str) -> u64 {
    let seen = marks.seen.iter().find(|seen| seen.label == label).unwrap();
    seen.regions[region].get(what).map_or(0, |eighths| eighths.iter().sum())
}

#[test]
fn what_would_never_end_is_cut() {
    for (lines, why) in [
        ("map x 4K\nrepeat 4000000000\ntouch x\nend", "more than 400000 steps are not played"),
        ("repeat 4000000000\nend", "more than 400000 steps are not played"),
        ("sleep 4000000000", "more than 400000 steps are not played"),
        ("cgroup g\nrepeat 1000\nlimit max 64M\nend", "more than 400000 steps are not played"),
        ("map x 20G", "regions and files of more than 8 GiB are not played"),
        ("repeat 1000\nspawn\nsleep 1\nrepeat 1000\nend\nend\nend", "more than"),
    ] {
        let stopped = play(lines).stopped.unwrap_or_default();
        assert!(stopped.contains(why), "{lines}: {stopped}");
    }
}

#[test]
fn a_process_ends_where_it_does_not_understand_or_may_not() {
    for (lines, why) in [
        ("map x 8K\ntouch x next 16K", "outside of its range"),
        ("touch nothing", "no such name"),
        ("map x 4K\ntouch x stride 0", "it divided by 0"),
        ("file x 1M\nreadfile x block 128K", "it read more than its buffer holds"),
        ("map x 8K\nunmap x\ntouch x", "it touched what was not its own"),
        ("file f 8K\nmapfile m f\ntouch m", "it touched what was not its own"),
        ("map x 0", "no memory area"),
        ("dance x", "unknown operation"),
    ] {
        // A child alone, and the program itself.
        let marks = play(&format!("fork\n{lines}\nmark unsaid\nend\nmark said"));
        assert_eq!((labels(&marks), &marks.ended), (vec!["said", "after-exit"], &None), "{lines}");
        let marks = play(&format!("{lines}\nmark unsaid"));
        assert!(marks.ended.as_ref().is_some_and(|ended| ended.contains(why)), "{lines}: {:?}", marks.ended);
        assert_eq!(labels(&marks), ["after-exit"]);
    }
}

#[test]
fn what_a_call_refuses_does_not_end_the_scene() {
    let marks = play(
        "map x 1M\nfile f 1M\npolicy x bind 7\npolicy interleave\ncpu 9\nlimit in nobody max 4K\nlimit nonsense 4K\n\
         advise x collapse to 4K\nadvise f cold\nadvise x cold from 1K\nunmap x from 1K\nunmap f\nlock f\n\
         set /proc/sys/vm/swappiness much\nset /nowhere 1\nset /proc/sys/vm/dirty_expire_centisecs 9\nswapon zram 0\nswapon disk\nswapon disk\nwait\ntouch x\nmark end",
    );
    assert_eq!((labels(&marks), &marks.ended, &marks.stopped), (vec!["end", "after-exit"], &None, &None));
    assert_eq!(pages(&marks, "end", "x", "present"), 256);
    assert_eq!(marks.unplayed, ["memory.nonsense", "/nowhere", "/proc/sys/vm/dirty_expire_centisecs"]);
    let calls: Vec<&str> = marks.refused.iter().filter_map(|said| Some(said.split_once(": ")?.1)).collect();
    let refused = [
        "policy", "policy", "cpu", "limit", "madvise", "fadvise", "madvise", "munmap", "mlock", "set",
        "swapon", "swapon",
    ];
    assert_eq!(calls, refused);
}

#[test]
fn spawned_children_run_beside_their_parent() {
    let marks = play(
        "map a 1M\nspawn\ntouch a\nmark child\nend\nspawn\nfork\ntouch a to 64K\nmark grandchild\nend\nend\n\
         touch a to 512K\nwait\nmark waited\nwait\nmark again",
    );
    let mut said = labels(&marks);
    assert_eq!(said[2..], ["waited", "again", "after-exit"]);
    said.sort_unstable();
    assert_eq!(said, ["after-exit", "again", "child", "grandchild", "waited"]);
    let present = |label| pages(&marks, label, "a", "present");
    assert_eq!([present("child"), present("grandchild"), present("waited")], [256, 16, 128]);
    let number = |label| marks.seen.iter().find(|seen| seen.label == label).unwrap().process;
    assert_eq!([number("waited"), number("again"), number("after-exit")], [1, 1, 0]);
    assert_ne!(number("child"), number("grandchild"));
}

#[test]
fn the_largest_process_goes_when_memory_is_out() {
    // The parent has most: it goes, and its child ends its lines.
    let marks = play(
        "map a 300M\nmap b 512M\ntouch a\nspawn\nunmap a\ntouch b to 256M\nmark child\nend\nsleep 1\nwait\nmark parent",
    );
    assert_eq!(labels(&marks), ["child", "after-exit"], "{:?}", marks.stopped);
    assert!(marks.ended.as_ref().is_some_and(|ended| ended.contains("killed")), "{:?}", marks.ended);
    // The child is larger: it goes.
    let marks = play("map a 600M\nfork\ntouch a\nmark child\nend\ntouch a to 8M\nmark parent");
    assert_eq!((labels(&marks), &marks.ended), (vec!["parent", "after-exit"], &None));
    assert_eq!(marks.seen[0].events["oom_kill"], 1);
}

#[test]
fn a_limit_takes_the_largest_of_its_group() {
    // Who writes it, if it is that.
    let marks = play(
        "map a 64M\nfork\ntouch a to 40M\nlimit max 16M\nmark child\nend\nmark parent\ntouch a to 8M\nmark end",
    );
    assert_eq!(labels(&marks), ["parent", "end", "after-exit"]);
    assert_eq!(marks.seen[1].groups["scene"]["events oom_kill"], 1);
    // Not the largest of all.
    let marks = play(
        "map a 64M\nspawn\ncgroup other\ntouch a\nsleep 20\nmark large\nend\nspawn\ntouch a to 40M\nsleep 20\nmark small\nend\n\
         sleep 10\nlimit max 16M\nmark limited\nlimit in other max 8M\nwait\nmark end",
    );
    assert_eq!((labels(&marks), &marks.ended), (vec!["limited", "end", "after-exit"], &None));
    let kills = |label: usize, group| marks.seen[label].groups[group]["events oom_kill"];
    assert_eq!([kills(0, "scene"), kills(0, "other"), kills(1, "other")], [1, 0, 1]);
}

#[test]
fn memory_comes_from_where_the_task_says() {
    let marks = play_on(
        "numa-place",
        "cpu 0\nfile f 4M\npolicy bind 1\nmap a 4M nohuge\ntouch a\nmark bound\npolicy interleave 0,1\nmap b 4M nohuge\ntouch b\n\
         mark interleaved\npolicy default\npolicy b bind 0\nmap c 4M nohuge\ntouch c\nadvise b dontneed\ntouch b\nfork\nadvise a dontneed\n\
         touch a\nend\nmark end",
    );
    let nodes =
        |label, region| [pages(&marks, label, region, "node0"), pages(&marks, label, region, "node1")];
    assert_eq!(nodes("bound", "a"), [0, 1024], "{:?}", marks.stopped);
    assert_eq!(nodes("interleaved", "b"), [512, 512]);
    assert_eq!([nodes("end", "c"), nodes("end", "b")], [[1024, 0], [1024, 0]]);
}

/// Asynchronous compaction looks for free frames at every 32nd page of a block first. Where every second page is free, these are all
/// among them or none is, by where the first of them lies: so the scenes `compaction` hang on a page that no capture tells of
/// (docs/compaction.md).
#[test]
fn one_page_more_decides_what_asynchronous_compaction_finds() {
    let huge = |pages: u32| {
        let before = match pages {
            0 => String::new(),
            _ => format!("map before {}K\ntouch before\n", 4 * pages),
        };
        let marks = play_on(
            "compaction",
            &format!(
                "set /sys/kernel/mm/transparent_hugepage/enabled always\n\
                 set /sys/kernel/mm/transparent_hugepage/defrag always\n\
                 map frag 272M nohuge\nmap a 64M\n{before}touch frag\nmark start\n\
                 advise frag dontneed every 8K piece 4K\ntouch a\nmark wanted"
            ),
        );
        let wanted = marks.seen.iter().find(|seen| seen.label == "wanted").unwrap();
        wanted.events["thp_fault_alloc"]
    };
    let [none, one, two, three] = [0, 1, 2, 3].map(huge);
    assert!(none.min(two) > one.max(three) + 5, "{none} {one} {two} {three} of 32 huge pages");
}

/// Memory is in pieces, and the program sleeps for longer than kcompactd does.
#[test]
fn kcompactd_looks_unasked_as_eagerly_as_it_is_told_to() {
    let scanned = |proactiveness: u64| {
        let marks = play(&format!(
            "set /proc/sys/vm/compaction_proactiveness {proactiveness}\n\
             map a 384M nohuge\ntouch a\nadvise a dontneed every 8K piece 4K\nmark pieces\nsleep 1100\nmark later"
        ));
        let counted = |label: &str| {
            let seen = marks.seen.iter().find(|seen| seen.label == label).unwrap();
            seen.events["compact_daemon_migrate_scanned"]
        };
        counted("later") - counted("pieces")
    };
    let [never, usual, eager] = [0, 20, 90].map(scanned);
    assert_eq!((never, usual), (0, 0), "less than nine in ten pages that are free are in pieces");
    assert!(eager > 10_000, "{eager}");
}

/// The second name's region lies in that of the first one, which is eight GiB long.
#[test]
fn a_region_has_room_where_a_long_one_was_unmapped() {
    let marks = play("map t 8G nohuge\nunmap t to 2G\nmap h 4M\ntouch h\nmark end");
    assert_eq!((pages(&marks, "end", "h", "present"), &marks.ended), (1024, &None));
    let ended = play("map t 8G nohuge\nmap h 4M\nmark end").ended.unwrap_or_default();
    assert!(ended.contains("no memory area"), "{ended}");
}

#[test]
fn files_come_and_go() {
    let marks = play(
        "file f 1M\nmark made\nreadfile f\nmark read\nadvise f dontneed from 2K to 512K\nmark dropped\nset /proc/sys/vm/drop_caches 3\n\
         mark none\nadvise f willneed from 512K\nmark wanted\nwrite f block 3K to 30K\nmark written\nmapfile m f private\n\
         touch m to 64K\nadvise m willneed\nmark mapped",
    );
    let cached = |label| pages(&marks, label, "f", "cached");
    assert_eq!(["made", "read", "dropped", "none"].map(cached), [0, 256, 129, 0]);
    assert_eq!(cached("wanted"), 128, "{:?}", marks.stopped);
    assert_eq!([cached("written"), cached("mapped")], [136, 256]);
    assert_eq!(pages(&marks, "mapped", "m", "present"), 16);
}

/// Lines, with words in capitals for what `WORDS` has.
const LINES: [&str; 20] = [
    "map NAME SIZE noise 9 MORE",
    "file NAME SIZE",
    "mapfile NAME NAME private",
    "touch NAME RANGE MORE",
    "touch NAME RANGE MORE",
    "readfile NAME RANGE MORE",
    "write NAME RANGE MORE",
    "zipf NAME COUNT COUNT 7 RANGE",
    "advise NAME ADVICE RANGE",
    "advise NAME ADVICE RANGE",
    "unmap NAME RANGE",
    "lock NAME\nsync NAME",
    "limit KNOB SIZE",
    "limit in GROUP KNOB SIZE",
    "cgroup GROUP",
    "set FILE",
    "swapon zram SIZE\nswapon disk",
    "policy NAME MODE\npolicy MODE",
    "cpu COUNT\nsleep COUNT\nmark COUNT\nwait",
    "fork\nend\nend",
];

const WORDS: [(&str, &[&str]); 11] = [
    (
        "RANGE",
        &[
            "",
            "from SIZE",
            "to SIZE",
            "next SIZE",
            "from SIZE to SIZE stride SIZE block SIZE",
            "every SIZE piece SIZE",
        ],
    ),
    ("NAME", &["a", "a", "b", "b", "f", "m", "none"]),
    (
        "SIZE",
        &[
            "0",
            "1",
            "4K",
            "5000",
            "64K",
            "1M",
            "2M",
            "3M",
            "40M",
            "600M",
            "9G",
            "99999999999999999999",
            "x",
            "",
        ],
    ),
    ("MORE", &["", "read", "back", "rand 3", "rand 0 times 2", "times 0", "write"]),
    ("COUNT", &["0", "1", "2", "3", "7", "100", "4000000000", "-1"]),
    (
        "ADVICE",
        &[
            "dontneed",
            "free",
            "cold",
            "pageout",
            "willneed",
            "random",
            "sequential",
            "normal",
            "hugepage",
            "nohugepage",
            "collapse",
            "populate_read",
            "populate_write",
            "sideways",
        ],
    ),
    ("KNOB", &["max", "high", "low", "min", "swap.max", "reclaim", "oom.group"]),
    ("GROUP", &["scene", "other", "third/below", "/"]),
    ("MODE", &["default", "bind 0", "bind 9", "interleave 0,1", "preferred", "local 1", "preferred 1"]),
    (
        "FILE",
        &[
            "/proc/sys/vm/compact_memory 1",
            "/proc/sys/vm/drop_caches 3",
            "/proc/sys/vm/swappiness 200",
            "/proc/sys/vm/min_free_kbytes 400000",
            "/proc/sys/vm/watermark_scale_factor 1000",
            "/proc/sys/vm/zone_reclaim_mode 7",
            "/proc/self/oom_score_adj -1000",
            "/sys/kernel/mm/lru_gen/enabled n",
            "/sys/kernel/mm/lru_gen/enabled y",
            "/sys/kernel/mm/transparent_hugepage/DIR always",
        ],
    ),
    ("DIR", &["enabled", "defrag", "khugepaged/defrag"]),
];

fn line() -> impl Strategy<Value = String> {
    (prop::sample::select(&LINES[..]), prop::collection::vec(any::<usize>(), 16)).prop_map(|(line, draws)| {
        let (mut line, mut draws) = (line.to_owned(), draws.into_iter().cycle());
        for (word, choices) in WORDS {
            while line.contains(word) {
                let choice = draws.next().unwrap_or(0) % choices.len();
                line = line.replacen(word, choices[choice], 1);
            }
        }
        line
    })
}

/// Lines and blocks of lines.
fn program() -> impl Strategy<Value = String> {
    let block = line().prop_recursive(3, 24, 6, |inner| {
        let lines = prop::collection::vec(inner, 1..6).prop_map(|lines| lines.join("\n"));
        let begin = prop::sample::select(vec!["fork", "spawn", "repeat 3", "repeat 100000"]);
        (begin, lines).prop_map(|(begin, lines)| format!("{begin}\n{lines}\nend"))
    });
    let first = "map a 40M noise 64\nmap b 8M shared\nfile f 3M\nmapfile m f\nset /proc/sys/vm/swappiness 100\nswapon zram 16M";
    // A line that nobody understands ends a child alone.
    let block = (block, any::<bool>());
    let block = block.prop_map(|(lines, alone)| if alone { format!("fork\n{lines}\nend") } else { lines });
    prop::collection::vec(block, 1..20).prop_map(move |lines| format!("{first}\n{}", lines.join("\n")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever a program says, a play comes to an end.
    #[test]
    fn any_program_ends_in_an_outcome(program in program(), numa in any::<bool>()) {
        let name = if numa { "numa-place" } else { "fork-cow-always" };
        let outcome = conform_within(&instead(name, &program), 60_000).unwrap();
        for note in &outcome.notes {
            prop_assert!(!note.contains('\n') && note.len() < 1000, "{}", note);
        }
    }
}
