//! What is understood, and what is said of what is not.

use super::*;
use crate::script::program::{Order, Part};

fn refused(text: &str) -> String {
    let said = read(text).expect_err(text);
    assert!(!said.contains('\n') && said.starts_with("line "), "{said}");
    said
}

#[test]
fn a_script_is_operations_and_blocks() {
    let text = "# hot pages\nmap hot 200K\n\nrepeat 2K\n  time round-#\n    touch hot rand 7 times 3\n  end\n  compute 500\nend\nmark done pswpin hot.swap";
    let steps = read(text).unwrap();
    let numbers: Vec<usize> = steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, [2, 4, 5, 6, 8, 10]);
    assert_eq!(steps[1].act, Act::Repeat { end: 5, times: 2048 });
    let Act::Time { end: 4, label } = &steps[2].act else { panic!("{steps:?}") };
    assert_eq!(label.in_round(12), "round-12");
    let Act::Does(What::Accesses(touch)) = &steps[3].act else { panic!("{steps:?}") };
    assert_eq!((touch.part, touch.order, touch.times), (Part::default(), Order::Drawn(7), 3));
    assert_eq!(steps[4].act, Act::Compute(500));
    let Act::Mark { counters, .. } = &steps[5].act else { panic!("{steps:?}") };
    assert_eq!(counters[..], ["pswpin", "hot.swap"]);
}

#[test]
fn rounds_may_last_a_time_and_parts_of_a_region_be_locked() {
    let steps = read("map a 8M\nlock a from 2M every 2M piece 512K\nfor 2K\ntime t-#\ntouch a\nend\nend\nmark m a.rss/s pgfault/pgmajfault").unwrap();
    let Act::Does(What::Lock { name, part, pieces }) = &steps[1].act else { panic!("{steps:?}") };
    assert_eq!((name.as_str(), part.from, pieces.every, pieces.piece), ("a", 2 << 20, 2 << 20, 512 << 10));
    assert_eq!(steps[2].act, Act::For { end: 5, ms: 2048 });
    let Act::Mark { counters, .. } = &steps[5].act else { panic!("{steps:?}") };
    assert_eq!(counters[..], ["a.rss/s", "pgfault/pgmajfault"]);
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_may_stand_there() {
    for (text, said) in [
        ("map a 4K\ntuch a", "line 2: `tuch` is no operation; there are map, "),
        ("map a", "line 1: there is something missing in `map NAME SIZE [shared]"),
        ("map a 4KB", "line 1: `4KB` is not a size such as 4096, 64K, 2M or 1G, in `map NAME"),
        ("map a 9000G", "line 1: `a` has 9663676416000 bytes, but may have from 4K to 8192G"),
        ("touch b", "line 1: nothing is called `b` here; there is nothing yet"),
        ("map a 4K\ntouch a strid 4K", "line 2: `strid` means nothing in `touch NAME"),
        ("map a 4K\ntouch a stride", "line 2: nothing stands behind `stride` in `touch"),
        ("map a 4K\ntouch a stride 0", "line 2: a stride or block has at least a byte"),
        ("map a 8K\ntouch a from 4K to 12K", "line 2: this is outside of `a`, which has 8192 bytes"),
        ("map a 4K\nreadfile a", "line 2: `a` is memory; this is for a file"),
        ("file f 4K\ntouch f", "line 2: `f` is a file; this is for memory (mapfile)"),
        ("map a 4K\ntouch a read write", "line 2: `read` and `write` contradict each other"),
        ("map a 4K\nmap a 4K", "line 2: there is a `a` already"),
        ("repeat 2\nmap a 4K\nend", "line 2: `a` would be made anew in each round"),
        ("repeat 3\nwait", "line 1: `repeat` has no `end`"),
        ("wait\nend", "line 2: `end` ends nothing"),
        ("time a-#\nend", "line 1: `#` in a label is the number of a round"),
        ("map a 4K\nadvise a gone", "line 2: `gone` is no advice; there are dontneed, "),
        ("map a 8M\nadvise a cold every 2M", "line 2: `every S` and `piece P` go together"),
        ("limit hard 4M", "line 1: `hard` is no limit, in `limit [in GROUP] max|"),
        ("limit high lots", "line 1: `lots` is not a size"),
        ("set vm.swapiness 1", "line 1: "),
        ("set memory.max 4M", "line 1: `memory.max` is a limit of a group: `limit [in"),
        ("policy a", "line 1: it is not of the form `policy [NAME]"),
        ("for 0\nwait\nend", "line 1: what goes on for 0 ms does nothing"),
        ("for ever\nwait\nend", "line 1: `ever` is not a number such as 100 or 2K, in `for MS"),
        ("for 5\nwait", "line 1: `for` has no `end`"),
        ("for 5\nmap a 4K\nend", "line 2: `a` would be made anew in each round"),
        ("map a 8M\nlock a every 2M", "line 2: `every S` and `piece P` go together in `lock NAME"),
        ("map a 8M\nlock a to 9M", "line 2: this is outside of `a`, which has 8388608 bytes"),
        ("file f 4K\nlock f", "line 2: `f` is a file; this is for memory (mapfile)"),
        ("mark a b/c/d", "line 1: `b/c/d` is no counter's name, nor two with a `/` between them"),
        ("mark a b/", "line 1: `b/` is no counter's name"),
        ("machine memory 1G", "line 1: the machine is the experiment's"),
        ("swapon disk", "line 1: swap is there from the start: knobs = "),
        ("map a 4K noise 3", "line 1: `noise` means nothing in `map"),
        ("map a 8K\nzipf a 10 75 1", "line 2: a skew is 50, 100 or 150, not 75"),
        ("map a 8K\ntouch a rand 0", "line 2: a seed is from 1 on"),
    ] {
        assert!(refused(text).starts_with(said), "{text:?}: {}", refused(text));
    }
    assert!(read("# nothing\n").is_err());
    assert!(refused(&"wait\n".repeat(401)).starts_with("line 401: a script has at most 400"));
    assert!(refused(&"repeat 1\n".repeat(20)).starts_with("line 17: blocks lie within"));
}

/// What a child makes is gone with it, so each round may have a new child that makes it again.
#[test]
fn names_of_a_child_end_with_it() {
    assert!(read("repeat 3\nfork\nmap a 4K\ntouch a\nend\nend").is_ok());
    assert_eq!(
        refused("fork\nmap a 4K\nend\ntouch a"),
        "line 4: nothing is called `a` here; there is nothing yet"
    );
}
