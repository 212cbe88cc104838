//! The language of scenes, as far as they are played.

use mm::mempolicy::MemPolicy;
use mm::vm::{Advice, HugePages, Touch};
use mm::{Node, NodeMask};

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
    Advise {
        name: String,
        advice: Advice,
        part: Part,
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

fn operation(number: usize, words: &[&str]) -> Result<What, FormatError> {
    let other = || What::Other(words[0].to_string());
    Ok(match words {
        ["set", file, value] => What::Set { file: (*file).into(), value: (*value).into() },
        ["map", name, size, rest @ ..] => map(number, name, size, rest)?.unwrap_or_else(other),
        ["touch", name, rest @ ..] => touch(number, name, rest)?,
        ["advise", name, word, rest @ ..] => match advice(word) {
            Some(advice) => {
                What::Advise { name: (*name).into(), advice, part: part(number, &mut rest.iter())? }
            }
            None => What::Other(format!("advise {word}")),
        },
        ["unmap", name, rest @ ..] => {
            What::Unmap { name: (*name).into(), part: part(number, &mut rest.iter())? }
        }
        ["policy", name, word, rest @ ..] if rest.len() <= 1 => match policy(number, word, rest)? {
            Some(policy) => What::Policy { name: (*name).into(), policy },
            None => other(),
        },
        ["cpu", cpu] => What::Cpu(whole(number, cpu)? as u16),
        ["sleep", ms] => What::Sleep(whole(number, ms)?.into()),
        ["mark", _] => What::Mark,
        [_, ..] => other(),
        [] => return Err(FormatError::new(number, "an empty line")),
    })
}

/// `None`: a region of a kind that is not played.
fn map(number: usize, name: &str, size: &str, rest: &[&str]) -> Result<Option<What>, FormatError> {
    let (mut shared, mut huge, mut rest) = (false, HugePages::AsConfigured, rest.iter());
    while let Some(&word) = rest.next() {
        match word {
            "shared" => shared = true,
            "huge" => huge = HugePages::Advised,
            "nohuge" => huge = HugePages::Never,
            // What pages hold makes no difference here.
            "noise" => drop(rest.next()),
            _ => return Ok(None),
        }
    }
    Ok(Some(What::Map { name: name.into(), pages: pages(number, size)?, shared, huge }))
}

fn touch(number: usize, name: &str, rest: &[&str]) -> Result<What, FormatError> {
    let (mut part, mut rest) = (Part::default(), rest.iter());
    let (mut stride, mut touch, mut order, mut times) = (1, Touch::Write, Order::Up, 1);
    while let Some(&word) = rest.next() {
        let mut next = || rest.next().copied().unwrap_or("");
        match word {
            "stride" => stride = pages(number, next())?,
            "read" => touch = Touch::Read,
            "write" => touch = Touch::Write,
            "back" => order = Order::Down,
            "rand" => order = Order::Drawn(whole(number, next())?.into()),
            "times" => times = whole(number, next())?,
            word => part_word(number, word, next(), &mut part)?,
        }
    }
    Ok(What::Touch { name: name.into(), part, stride, touch, order, times })
}

fn part<'a>(number: usize, words: &mut impl Iterator<Item = &'a &'a str>) -> Result<Part, FormatError> {
    let mut part = Part::default();
    while let Some(word) = words.next() {
        let size = words.next().copied().unwrap_or("");
        part_word(number, word, size, &mut part)?;
    }
    Ok(part)
}

fn part_word(number: usize, word: &str, size: &str, part: &mut Part) -> Result<(), FormatError> {
    let pages = pages(number, size)?;
    match word {
        "from" => part.from = Some(pages),
        "to" => part.to = Some(pages),
        "next" => part.next = Some(pages),
        "every" => part.every = Some((pages, pages)),
        "piece" => part.every = part.every.map(|(every, _)| (every, pages)),
        _ => return Err(FormatError::new(number, format!("`{word}` is no word of a scene here"))),
    }
    Ok(())
}

fn advice(word: &str) -> Option<Advice> {
    Some(match word {
        "dontneed" => Advice::DontNeed,
        "free" => Advice::Free,
        "cold" => Advice::Cold,
        "collapse" => Advice::Collapse,
        "populate_read" => Advice::PopulateRead,
        "populate_write" => Advice::PopulateWrite,
        "hugepage" => Advice::Huge(HugePages::Advised),
        "nohugepage" => Advice::Huge(HugePages::Never),
        _ => return None,
    })
}

/// `None`: a policy of the task, not of a region.
fn policy(number: usize, word: &str, nodes: &[&str]) -> Result<Option<MemPolicy>, FormatError> {
    let mut mask = vec![];
    for node in nodes.iter().flat_map(|nodes| nodes.split(',')) {
        mask.push(Node(whole(number, node)? as u16));
    }
    let all: NodeMask = mask.iter().copied().collect();
    Ok(match (word, &mask[..]) {
        ("default" | "local", _) => Some(MemPolicy::Local),
        ("bind", [_, ..]) => Some(MemPolicy::Bind(all)),
        ("interleave", [_, ..]) => Some(MemPolicy::Interleave(all)),
        ("preferred", [node]) => Some(MemPolicy::Preferred(*node)),
        _ => None,
    })
}

fn whole(number: usize, text: &str) -> Result<u32, FormatError> {
    text.parse().map_err(|_| FormatError::new(number, format!("`{text}` is no number")))
}

/// A size in bytes, with K, M or G, in pages.
fn pages(number: usize, text: &str) -> Result<u32, FormatError> {
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
        let text = "machine memory 512M\n# said\nmap a 2M huge\nfork\ntouch a to 64K rand 9\nend\nfile f 1M";
        let program = parsed(text).unwrap();
        let [map, fork, other] = &program[..] else { panic!("{program:?}") };
        assert!(matches!(&map.what, What::Map { pages: 512, huge: HugePages::Advised, .. }));
        let What::Fork(body) = &fork.what else { panic!("{fork:?}") };
        let What::Touch { part, order: Order::Drawn(9), .. } = &body[0].what else { panic!("{body:?}") };
        assert_eq!((part.to, body[0].number), (Some(16), 5));
        assert!(matches!(&other.what, What::Other(name) if name == "file"));
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
