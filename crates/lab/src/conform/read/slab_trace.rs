//! Reads a slab trace: one allocation or free of a cache's object a line, `seconds,cpu,task,event,object`; and the text
//! beside it, with what /sys/kernel/slab said of the cache before and after.

use super::attributes::Attributes;
use super::sections::{FormatError, Sections, clip, number};
use super::slab_nodes::SlabNodes;

/// A line of a slab trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::conform) struct SlabTraceEvent {
    /// The line in the file.
    pub(in crate::conform) line: u32,
    pub(in crate::conform) cpu: u16,
    /// What happened.
    pub(in crate::conform) kind: SlabTraceKind,
    /// The object's address.
    pub(in crate::conform) object: u64,
}

/// What happened to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::conform) enum SlabTraceKind {
    /// It was handed out.
    Alloc,
    /// It was freed.
    Free,
}

/// The first line of a slab trace.
const HEADER: &str = "seconds,cpu,task,event,object";
const MAX_CPU: u16 = 1023;

/// Whether `text` has the heading of a slab trace.
pub(in crate::conform) fn is_slab_trace(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_end() == HEADER)
}

/// Reads a slab trace.
pub(in crate::conform) fn events(text: &str) -> Result<Vec<SlabTraceEvent>, FormatError> {
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
pub(in crate::conform) struct SlabBeside {
    /// What `uname -r` said.
    pub(in crate::conform) release: String,
    /// The cache's files when the trace began.
    pub(in crate::conform) before: Attributes,
    /// The same when it had ended.
    pub(in crate::conform) after: Attributes,
    /// The machine.
    pub(in crate::conform) nodes: SlabNodes,
}

impl SlabBeside {
    pub(in crate::conform) fn parse(text: &str) -> Result<Self, FormatError> {
        let sections = Sections::of(text);
        let before = Attributes::of(sections.need("slab-before")?);
        let after = Attributes::of(sections.need("slab-after")?);
        let nodes = SlabNodes::of(text, [&before, &after])?;
        Ok(Self { release: sections.word("uname").to_string(), before, after, nodes })
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
