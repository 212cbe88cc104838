//! Reads a slab trace: one allocation or free of a cache's object a line, `seconds,cpu,task,event,object`; and the text
//! beside it, with what /sys/kernel/slab said of the cache before and after.

use super::sections::{FormatError, Section, Sections, clip, number};
use super::slab_nodes::SlabNodes;
use super::slab_paths::FileOrder;

/// A line of a slab trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlabTraceEvent {
    /// The line in the file.
    pub(super) line: u32,
    /// The CPU.
    pub(super) cpu: u16,
    /// What happened.
    pub(super) kind: SlabTraceKind,
    /// The object's address.
    pub(super) object: u64,
}

/// What happened to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlabTraceKind {
    /// It was handed out.
    Alloc,
    /// It was freed.
    Free,
}

/// The first line of a slab trace.
const HEADER: &str = "seconds,cpu,task,event,object";
const MAX_CPU: u16 = 1023;

/// Whether `text` has the heading of a slab trace.
pub(super) fn is_slab_trace(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_end() == HEADER)
}

/// Reads a slab trace.
pub(super) fn events(text: &str) -> Result<Vec<SlabTraceEvent>, FormatError> {
    let lines = text.lines().enumerate().skip(1).filter(|(_, text)| !text.is_empty());
    let events: Vec<_> = lines.map(|(index, text)| event(index + 1, text)).collect::<Result<_, _>>()?;
    if events.is_empty() {
        return Err(FormatError::new(0, "it holds no slab event"));
    }
    Ok(events)
}

fn event(line: usize, text: &str) -> Result<SlabTraceEvent, FormatError> {
    let wrong = |what: String| FormatError::new(line, what);
    let mut columns = text.split(',');
    let mut column = || columns.next().unwrap_or_default();
    let (_seconds, cpu, _task, event, object) = (column(), column(), column(), column(), column());
    let cpu: u16 = number(line, "the CPU", cpu)?;
    if cpu > MAX_CPU {
        return Err(wrong(format!("CPU {cpu} is above {MAX_CPU}")));
    }
    let kind = match event {
        "slab_alloc" => SlabTraceKind::Alloc,
        "slab_free" => SlabTraceKind::Free,
        other => return Err(wrong(format!("no slab event is called '{}'", clip(other)))),
    };
    let object = u64::from_str_radix(object, 16);
    let object = object.map_err(|_| wrong("the object is no address in hexadecimal digits".to_string()))?;
    Ok(SlabTraceEvent { line: line as u32, cpu, kind, object })
}

/// What stands beside a slab trace.
#[derive(Clone, Debug)]
pub(super) struct SlabBeside {
    /// What `uname -r` said.
    pub(super) release: String,
    /// The cache's files when the trace began.
    pub(super) before: Attributes,
    /// The same when it had ended.
    pub(super) after: Attributes,
    /// The machine.
    pub(super) nodes: SlabNodes,
}

/// The files of a cache, name and text, in the order in which they were read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Attributes(Vec<(String, String)>);

impl FromIterator<(String, String)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

impl SlabBeside {
    pub(super) fn parse(text: &str) -> Result<Self, FormatError> {
        let sections = Sections::of(text);
        let before = Attributes::of(sections.need("slab-before")?);
        let after = Attributes::of(sections.need("slab-after")?);
        let nodes = SlabNodes::of(text, [&before, &after])?;
        Ok(Self { release: sections.word("uname").to_string(), before, after, nodes })
    }
}

impl Attributes {
    fn of(section: &Section<'_>) -> Self {
        let pairs = section.lines.iter().filter_map(|(_, text)| text.split_once('='));
        pairs.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect()
    }

    /// The text of a file, if there is one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str())
    }

    /// How many files were read, and where those of frees stand among them.
    pub(super) fn order(&self) -> FileOrder {
        let place = |name| self.0.iter().position(|(file, _)| file == name);
        let between = place("free_frozen").zip(place("free_slowpath"));
        let between_frees = between.map_or(0, |(frozen, slow)| slow.abs_diff(frozen) as u64);
        FileOrder { files: self.0.len() as u64, between_frees }
    }

    /// The number that a file begins with.
    pub(super) fn need(&self, name: &str) -> Result<u32, FormatError> {
        let text = self.get(name).ok_or_else(|| FormatError::new(0, format!("there is no {name}")))?;
        number(0, name, text.split_whitespace().next().unwrap_or_default())
    }

    /// The highest index that a count by CPU (`C`) or by node (`N`) has in any file.
    pub(super) fn highest(&self, letter: char) -> Option<u16> {
        let words = self.0.iter().flat_map(|(_, text)| text.split_whitespace());
        let indices = words.filter_map(|word| word.strip_prefix(letter)?.split_once('=')?.0.parse().ok());
        indices.max()
    }

    /// What each of `cpus` CPUs counted, `81 C0=32 C1=49`; `None` if there is no such counter.
    pub(super) fn counts(&self, name: &str, cpus: usize) -> Result<Option<Vec<u64>>, FormatError> {
        self.counts_by(name, 'C', cpus)
    }

    /// The counts of a file by CPU (`C`) or by node (`N`), of `parts` of them; `None` if there is no such file.
    pub(super) fn counts_by(
        &self,
        name: &str,
        letter: char,
        parts: usize,
    ) -> Result<Option<Vec<u64>>, FormatError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let mut counts = vec![0; parts];
        for word in text.split_whitespace().skip(1) {
            let broken = || FormatError::new(0, format!("{name} says '{}'", clip(word)));
            let (part, count) =
                word.strip_prefix(letter).and_then(|word| word.split_once('=')).ok_or_else(broken)?;
            let part: usize = number(0, name, part)?;
            *counts.get_mut(part).ok_or_else(broken)? = number(0, name, count)?;
        }
        Ok(Some(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_events() {
        let text =
            "seconds,cpu,task,event,object\n1.5,1,a-1,slab_alloc,ff11000010d7b5e8\n1.6,0,b-2,slab_free,a8\n";
        let read = events(text).unwrap();
        assert_eq!(read[1], SlabTraceEvent { line: 3, cpu: 0, kind: SlabTraceKind::Free, object: 0xa8 });
        assert_eq!(read[0].object, 0xff11_0000_10d7_b5e8);
        for broken in ["1,0,a,slab_alloc,xyz", "1,0,a,slab_move,a8", "1,9999,a,slab_free,a8", "1"] {
            assert!(events(&format!("{HEADER}\n{broken}\n")).is_err(), "{broken}");
        }
    }

    #[test]
    fn counters_are_by_cpu() {
        let beside = SlabBeside::parse("@@slab-before\nx=81 C0=32 C3=49\ny=0\n@@slab-after\n").unwrap();
        assert_eq!(beside.before.counts("x", 4).unwrap(), Some(vec![32, 0, 0, 49]));
        assert_eq!(beside.before.counts("y", 2).unwrap(), Some(vec![0, 0]));
        assert_eq!(beside.before.counts("z", 2).unwrap(), None);
        assert!(beside.before.counts("x", 2).is_err());
    }
}
