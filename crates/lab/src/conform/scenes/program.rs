//! The language of scenes, as far as they are played.

use mm::Limit;
use mm::mempolicy::MemPolicy;
use mm::vm::{HugePages, Touch};

use super::words::operation;
use crate::conform::read::sections::{FormatError, Section};

/// A page's bytes.
const PAGE: u64 = 4096;

/// A line of a program.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its number in the file.
    pub(super) number: usize,
    pub(super) what: What,
}

/// Part of a region, in pages: all of it where nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
    /// The pages after those that were last named so.
    pub(super) next: Option<u32>,
    /// Of every so many pages the first of these.
    pub(super) every: Option<(u32, u32)>,
}

/// In which order strides are touched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Up,
    Down,
    /// As many as there are, drawn by the generator of this seed.
    Drawn(u64),
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) enum What {
    Set {
        file: String,
        value: String,
    },
    Map {
        name: String,
        pages: u32,
        shared: bool,
        huge: HugePages,
    },
    Touch {
        name: String,
        part: Part,
        stride: u32,
        touch: Touch,
        order: Order,
        times: u32,
    },
    /// A file, written and dropped from memory.
    File {
        name: String,
        pages: u32,
    },
    MapFile {
        name: String,
        file: String,
        how: FileMapping,
    },
    /// Calls that read or write a block each.
    Calls {
        name: String,
        part: Part,
        /// Pages; as the order has it where nothing is said.
        block: Option<u32>,
        touch: Touch,
        order: Order,
        times: u32,
    },
    Zipf {
        name: String,
        part: Part,
        count: u32,
        skew: Skew,
        seed: u64,
        touch: Touch,
    },
    Sync,
    Advise {
        name: String,
        word: String,
        part: Part,
    },
    Lock(String),
    SwapOn(SwapDevice),
    Cgroup(String),
    Limit {
        group: Option<String>,
        limit: Limit,
        /// `None`: `max`.
        pages: Option<u64>,
    },
    Unmap {
        name: String,
        part: Part,
    },
    Policy {
        name: String,
        policy: MemPolicy,
    },
    Cpu(u16),
    Sleep(u64),
    Mark,
    Fork(Vec<Line>),
    Repeat(u32, Vec<Line>),
    /// Something that is not played.
    Other(String),
}

/// How a file is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileMapping {
    Shared,
    Executable,
    Private,
}

/// What swap is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SwapDevice {
    Disk,
    /// So many pages of compressed memory.
    Zram(u32),
}

/// How much more popular the first pages of a Zipf access are: page i weighs the inverse of the root of i to this power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Skew(pub(super) u32);

/// The machine's second disk, in pages.
pub(super) fn swap_disk(section: &Section<'_>) -> u32 {
    let machine = section.lines.iter().find_map(|(_, line)| line.trim().strip_prefix("machine "));
    let words: Vec<&str> = machine.unwrap_or("").split_whitespace().collect();
    let said = words.windows(2).find(|pair| pair[0] == "swap").and_then(|pair| pages(0, pair[1]).ok());
    said.unwrap_or(512 << 8)
}

/// Reads the lines of a scene; the first is that of its machine.
pub(super) fn parse(section: &Section<'_>) -> Result<Vec<Line>, FormatError> {
    let is_code = |line: &&(usize, &str)| {
        let text = line.1.trim();
        !text.is_empty() && !text.starts_with('#') && !text.starts_with("machine ")
    };
    let mut lines = section.lines.iter().filter(is_code).copied();
    let (program, end) = block(&mut lines, 0)?;
    match end {
        Some(number) => Err(FormatError::new(number, "`end` of nothing")),
        None => Ok(program),
    }
}

/// How deep blocks may lie in one another.
const DEEPEST: usize = 32;

/// Lines up to an `end`, whose number is given, or to the last.
fn block<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    depth: usize,
) -> Result<(Vec<Line>, Option<usize>), FormatError> {
    let mut all = vec![];
    while let Some((number, text)) = lines.next() {
        let words: Vec<&str> = text.split_whitespace().collect();
        let what = match words[..] {
            ["end"] => return Ok((all, Some(number))),
            ["fork"] => What::Fork(closed(number, lines, depth)?),
            ["repeat", times] => What::Repeat(whole(number, times)?, closed(number, lines, depth)?),
            ["spawn"] => {
                closed(number, lines, depth)?;
                What::Other("spawn".into())
            }
            _ => operation(number, &words)?,
        };
        all.push(Line { number, what });
    }
    Ok((all, None))
}

fn closed<'a>(
    number: usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    depth: usize,
) -> Result<Vec<Line>, FormatError> {
    if depth == DEEPEST {
        return Err(FormatError::new(number, format!("blocks lie {DEEPEST} deep at most")));
    }
    let (body, end) = block(lines, depth + 1)?;
    end.map(|_| body).ok_or_else(|| FormatError::new(number, "its `end` is missing"))
}

pub(super) fn whole(number: usize, text: &str) -> Result<u32, FormatError> {
    text.parse().map_err(|_| FormatError::new(number, format!("`{text}` is no number")))
}

/// A size in bytes, with K, M or G, in pages.
pub(super) fn pages(number: usize, text: &str) -> Result<u32, FormatError> {
    let shift = match text.chars().last() {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    let bytes = digits.parse::<u64>().ok().and_then(|size| size.checked_mul(1 << shift));
    let pages = bytes.filter(|bytes| bytes % PAGE == 0).and_then(|bytes| u32::try_from(bytes / PAGE).ok());
    pages.ok_or_else(|| FormatError::new(number, format!("`{text}` is no size in whole pages")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Line>, String> {
        parse(&Section::whole(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn blocks_and_sizes_are_read() {
        let text = "machine memory 512M\n# said\nmap a 2M huge\nfork\ntouch a to 64K rand 9\nend\nwait";
        let program = parsed(text).unwrap();
        let [map, fork, other] = &program[..] else { panic!("{program:?}") };
        assert!(matches!(&map.what, What::Map { pages: 512, huge: HugePages::Advised, .. }));
        let What::Fork(body) = &fork.what else { panic!("{fork:?}") };
        let What::Touch { part, order: Order::Drawn(9), .. } = &body[0].what else { panic!("{body:?}") };
        assert_eq!((part.to, body[0].number), (Some(16), 5));
        assert!(matches!(&other.what, What::Other(name) if name == "wait"));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        for (text, error) in [
            ("fork\ntouch a", "line 1: its `end` is missing"),
            ("end", "line 1: `end` of nothing"),
            ("map a 5", "line 1: `5` is no size in whole pages"),
            ("map a 4K\ntouch a upwards 4K", "line 2: `upwards` is no word of a scene here"),
            ("sleep long", "line 1: `long` is no number"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), error);
        }
        let deep = "fork\n".repeat(100_000);
        assert_eq!(parsed(&deep).unwrap_err(), "line 33: blocks lie 32 deep at most");
    }
}
