//! mm's /proc files have the kernel's layout: line by line as a stock kernel printed them of the same machine, numbers
//! apart. Scripts that read the kernel's read ours.

use freehold_lab::conform::Capture;
use mm::{Bare, Cpu, Mm, Policy, Request};

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
        for (section_name, ours) in [("buddyinfo", mm.buddyinfo()), ("pagetypeinfo", mm.pagetypeinfo())] {
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
        let zoneinfo = mm(&text).zoneinfo();
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
