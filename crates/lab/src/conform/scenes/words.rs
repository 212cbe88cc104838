//! The words of an operation of a scene.

use mm::mempolicy::MemPolicy;
use mm::vm::{HugePages, Touch};
use mm::{Limit, Node, NodeMask};

use super::program::{FileMapping, Order, Part, Skew, SwapDevice, What, pages, whole};
use crate::conform::read::sections::FormatError;

/// Reads the words of a line.
pub(super) fn operation(number: usize, words: &[&str]) -> Result<What, FormatError> {
    let other = || What::Other(words[0].to_string());
    Ok(match words {
        ["set", file, value] => What::Set { file: (*file).into(), value: (*value).into() },
        ["map", name, size, rest @ ..] => map(number, name, size, rest)?.unwrap_or_else(other),
        ["touch", name, rest @ ..] => touch(number, name, rest)?,
        ["file", name, size] => What::File { name: (*name).into(), pages: pages(number, size)? },
        ["mapfile", name, file, rest @ ..] => map_file(name, file, rest).unwrap_or_else(other),
        ["readfile", name, rest @ ..] => calls(number, name, Touch::Read, rest)?,
        ["write", name, rest @ ..] => calls(number, name, Touch::Write, rest)?,
        ["sync", _] => What::Sync,
        ["zipf", name, count, skew, seed, rest @ ..] => zipf(number, name, [count, skew, seed], rest)?,
        ["advise", name, word, rest @ ..] => {
            What::Advise { name: (*name).into(), word: (*word).into(), part: part(number, &mut rest.iter())? }
        }
        ["unmap", name, rest @ ..] => {
            What::Unmap { name: (*name).into(), part: part(number, &mut rest.iter())? }
        }
        ["lock", name] => What::Lock((*name).into()),
        ["swapon", "disk"] => What::SwapOn(SwapDevice::Disk),
        ["swapon", "zram", size] => What::SwapOn(SwapDevice::Zram(pages(number, size)?)),
        ["cgroup", name] => What::Cgroup((*name).into()),
        ["limit", "in", group, knob, size] => limit(number, Some(group), knob, size)?.unwrap_or_else(other),
        ["limit", knob, size] => limit(number, None, knob, size)?.unwrap_or_else(other),
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

fn map_file(name: &str, file: &str, rest: &[&str]) -> Option<What> {
    let how = match rest {
        [] => FileMapping::Shared,
        ["exec"] => FileMapping::Executable,
        ["private"] => FileMapping::Private,
        _ => return None,
    };
    Some(What::MapFile { name: name.into(), file: file.into(), how })
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

fn calls(number: usize, name: &str, touch: Touch, rest: &[&str]) -> Result<What, FormatError> {
    let (mut part, mut rest) = (Part::default(), rest.iter());
    let (mut block, mut order, mut times) = (None, Order::Up, 1);
    while let Some(&word) = rest.next() {
        let mut next = || rest.next().copied().unwrap_or("");
        match word {
            "block" => block = Some(pages(number, next())?),
            "back" => order = Order::Down,
            "rand" => order = Order::Drawn(whole(number, next())?.into()),
            "times" => times = whole(number, next())?,
            word => part_word(number, word, next(), &mut part)?,
        }
    }
    Ok(What::Calls { name: name.into(), part, block, touch, order, times })
}

fn zipf(
    number: usize,
    name: &str,
    [count, skew, seed]: [&&str; 3],
    rest: &[&str],
) -> Result<What, FormatError> {
    let (mut part, mut rest, mut touch) = (Part::default(), rest.iter(), Touch::Read);
    while let Some(&word) = rest.next() {
        match word {
            "read" => touch = Touch::Read,
            "write" => touch = Touch::Write,
            word => part_word(number, word, rest.next().copied().unwrap_or(""), &mut part)?,
        }
    }
    let skew = whole(number, skew)?;
    if ![50, 100, 150].contains(&skew) {
        return Err(FormatError::new(number, format!("a skew is 50, 100 or 150, not {skew}")));
    }
    Ok(What::Zipf {
        name: name.into(),
        part,
        count: whole(number, count)?,
        skew: Skew(skew / 50),
        seed: whole(number, seed)?.into(),
        touch,
    })
}

fn limit(number: usize, group: Option<&str>, knob: &str, size: &str) -> Result<Option<What>, FormatError> {
    let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == knob) else { return Ok(None) };
    let pages = if size == "max" { None } else { Some(u64::from(pages(number, size)?)) };
    Ok(Some(What::Limit { group: group.map(Into::into), limit, pages }))
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
