//! Reads a page trace: one kmem page event a line, `seconds,cpu,task,event,pfn,order,migratetype,extra`, as .csv or
//! .csv.xz.

use std::io::Read;

use mm::{Order, Pfn};

use super::sections::{FormatError, clip, number};

/// What happened to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A block was handed out (`mm_page_alloc`).
    Alloc,
    /// A block was taken from the buddy lists for a pageset (`mm_page_alloc_zone_locked` with `percpu_refill`).
    Refill,
    /// A block was taken from the buddy lists for a request itself.
    ZoneLocked,
    /// A block was freed (`mm_page_free`).
    Free,
    /// A block freed before together with others now reaches the pageset (`mm_page_free_batched`).
    FreeBatched,
    /// A block went from a pageset to the buddy lists (`mm_page_pcpu_drain`).
    Drain,
    /// Whoever took the trace changed the knob.
    Mark,
}

/// A line of a page trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Microseconds since boot.
    pub time_us: u64,
    /// The block's first frame.
    pub pfn: Pfn,
    /// The same as an index into [`PageTrace::pfns`].
    pub page: u32,
    /// The line in the file.
    pub line: u32,
    /// The CPU.
    pub cpu: u16,
    /// The task, as an index into [`PageTrace::tasks`].
    pub task: u16,
    /// What happened.
    pub kind: EventKind,
    /// log2 of the block's pages.
    pub order: Order,
    /// The kernel's number of the migratetype; of no meaning where the event has none.
    pub migratetype: u8,
}

/// A page trace.
#[derive(Clone, Debug, Default)]
pub struct PageTrace {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Task names with their ids.
    pub tasks: Vec<String>,
    /// Every frame that an event names, ascending.
    pub pfns: Vec<Pfn>,
    /// Lines of events that say nothing of pages, or of requests that failed.
    pub passed_over: u64,
}

/// What the first line must be.
const HEADER: &str = "seconds,cpu,task,event,pfn,order,migratetype,extra";
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";
/// More than this an unpacked trace must not be.
const MAX_BYTES: u64 = 2 << 30;
const MAX_CPU: u16 = 1023;

/// Unpacks `bytes` if they are xz; whether they are a trace is another question.
///
/// # Errors
/// If the packed data is broken, or unpacks to more than 2 GiB or to something that is no text.
pub fn unpack(bytes: Vec<u8>) -> Result<String, FormatError> {
    let mut plain = bytes;
    if plain.starts_with(XZ_MAGIC) {
        let mut unpacked = vec![];
        let reader = lzma_rust2::XzReader::new(&plain[..], true);
        let read = reader.take(MAX_BYTES + 1).read_to_end(&mut unpacked);
        read.map_err(|cause| {
            FormatError::new(0, format!("its xz data is broken ({cause}): fetch it again"))
        })?;
        if unpacked.len() as u64 > MAX_BYTES {
            return Err(FormatError::new(0, "it unpacks to more than 2 GiB"));
        }
        plain = unpacked;
    }
    String::from_utf8(plain).map_err(|_| FormatError::new(0, "it is not text in UTF-8"))
}

/// Whether `text` has the heading of a trace.
pub(in crate::conform) fn is_trace(text: &str) -> bool {
    text.lines()
        .next()
        .is_some_and(|line| line.trim_end() == HEADER || line.starts_with("seconds,cpu,task,event,"))
}

impl PageTrace {
    /// Reads a page trace.
    ///
    /// # Errors
    /// The first line that cannot be read; or there is no page event in it.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line.trim_end() != HEADER) {
            return Err(FormatError::new(1, format!("a page trace begins with '{HEADER}'")));
        }
        let mut trace = Self::default();
        let mut tasks = std::collections::HashMap::new();
        for (index, text) in lines.filter(|(_, text)| !text.is_empty()) {
            let line = Line::split(index + 1, text)?;
            let Some(mut event) = line.event()? else {
                trace.passed_over += 1;
                continue;
            };
            let known = tasks.len();
            event.task = *tasks.entry(line.task).or_insert_with(|| {
                trace.tasks.push(line.task.to_string());
                known.min(usize::from(u16::MAX)) as u16
            });
            trace.events.push(event);
        }
        if trace.events.is_empty() {
            return Err(FormatError::new(0, "it holds no page event"));
        }
        trace.index_pages();
        Ok(trace)
    }

    /// Whether the trace says when pages that were freed together reach the pageset.
    pub fn has_commits(&self) -> bool {
        self.events.iter().any(|event| event.kind == EventKind::FreeBatched)
    }

    pub(in crate::conform) fn index_pages(&mut self) {
        self.pfns = self.events.iter().map(|event| event.pfn).collect();
        self.pfns.sort_unstable();
        self.pfns.dedup();
        for event in &mut self.events {
            event.page = self.pfns.binary_search(&event.pfn).expect("every frame was just listed") as u32;
        }
    }
}

/// The fields of a line.
struct Line<'a> {
    number: usize,
    seconds: &'a str,
    cpu: &'a str,
    task: &'a str,
    event: &'a str,
    pfn: &'a str,
    order: &'a str,
    migratetype: &'a str,
    extra: &'a str,
}

impl<'a> Line<'a> {
    /// A task may have commas in its name, so the last fields are counted from the end.
    fn split(number: usize, text: &'a str) -> Result<Self, FormatError> {
        let short = || FormatError::new(number, format!("'{}' does not have 8 fields", clip(text)));
        let (seconds, rest) = text.split_once(',').ok_or_else(short)?;
        let (cpu, rest) = rest.split_once(',').ok_or_else(short)?;
        let mut fields = rest.rsplitn(6, ',');
        let mut next = || fields.next().ok_or_else(short);
        let (extra, migratetype, order) = (next()?, next()?, next()?);
        let (pfn, event, task) = (next()?, next()?, next()?);
        Ok(Self { number, seconds, cpu, task, event, pfn, order, migratetype, extra })
    }

    /// `None` for an event that is not one of pages, or a request that found none.
    fn event(&self) -> Result<Option<Event>, FormatError> {
        let kind = match (self.event, self.extra.trim_end()) {
            ("alloc", _) => EventKind::Alloc,
            ("zone_locked", "refill") => EventKind::Refill,
            ("zone_locked", _) => EventKind::ZoneLocked,
            ("free", _) => EventKind::Free,
            ("free_batched", _) => EventKind::FreeBatched,
            ("pcpu_drain", _) => EventKind::Drain,
            ("mark", _) => EventKind::Mark,
            _ => return Ok(None),
        };
        let mut event = Event {
            time_us: self.microseconds()?,
            pfn: Pfn(0),
            page: 0,
            line: self.number as u32,
            cpu: number(self.number, "the CPU", self.cpu)?,
            task: 0,
            kind,
            order: Order::ZERO,
            migratetype: 0,
        };
        if event.cpu > MAX_CPU {
            return Err(FormatError::new(self.number, format!("CPU {} is above {MAX_CPU}", event.cpu)));
        }
        if kind == EventKind::Mark {
            return Ok(Some(event));
        }
        let pfn: u64 = number(self.number, "the pfn", self.pfn)?;
        // A request that found no page: frame 0 is never handed out.
        if matches!(pfn, 0 | u64::MAX) && kind == EventKind::Alloc {
            return Ok(None);
        }
        let pfn = u32::try_from(pfn).ok().filter(|&pfn| pfn < u32::MAX - 1024);
        event.pfn = Pfn(pfn.ok_or_else(|| FormatError::new(self.number, "the pfn is above 16 TiB"))?);
        let order = Order::new(number(self.number, "the order", self.order)?);
        event.order = order.ok_or_else(|| FormatError::new(self.number, "the order is above 10"))?;
        if !self.migratetype.is_empty() {
            event.migratetype = number(self.number, "the migratetype", self.migratetype)?;
        }
        Ok(Some(event))
    }

    fn microseconds(&self) -> Result<u64, FormatError> {
        let (whole, part) = self.seconds.split_once('.').unwrap_or((self.seconds, ""));
        let whole: u32 = number(self.number, "the time", whole)?;
        let digits = &part.as_bytes()[..part.len().min(6)];
        let mut micros = 0;
        for place in 0..6 {
            let digit = digits.get(place).copied().unwrap_or(b'0');
            if !digit.is_ascii_digit() {
                return Err(FormatError::new(self.number, format!("the time is '{}'", clip(self.seconds))));
            }
            micros = micros * 10 + u64::from(digit - b'0');
        }
        Ok(u64::from(whole) * 1_000_000 + micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<PageTrace, FormatError> {
        PageTrace::parse(&format!("{HEADER}\n{lines}"))
    }

    #[test]
    fn fields_are_read_and_tasks_may_have_commas() {
        let trace = parse("3.000042,1,a,b-7,zone_locked,77,3,1,refill\n3.5,0,x-1,free,12,0,,\n").unwrap();
        let [refill, free] = trace.events[..] else { panic!("two events") };
        assert_eq!((refill.time_us, refill.cpu, refill.kind), (3_000_042, 1, EventKind::Refill));
        assert_eq!((refill.pfn, refill.order.get(), refill.migratetype), (Pfn(77), 3, 1));
        assert_eq!((free.time_us, free.kind, free.page), (3_500_000, EventKind::Free, 0));
        assert_eq!(trace.tasks, ["a,b-7", "x-1"]);
        assert_eq!(trace.pfns, [Pfn(12), Pfn(77)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let message = |lines| parse(lines).unwrap_err().to_string();
        assert_eq!(message("1.0,0,x"), "line 2: '1.0,0,x' does not have 8 fields");
        assert_eq!(message("1.0,0,x,free,5,11,,"), "line 2: the order is above 10");
        assert_eq!(message("1.0,0,x,free,p,0,,"), "line 2: the pfn is 'p', not a number in range");
        assert_eq!(message("1.x,0,x,free,5,0,,"), "line 2: the time is '1.x'");
        assert_eq!(message("1.0,0,x,slab_free,5,0,,"), "it holds no page event");
    }

    #[test]
    fn a_request_that_found_none_is_passed_over() {
        let trace = parse("1.0,0,x,alloc,18446744073709551615,0,1,\n1.0,0,x,alloc,5,0,1,\n").unwrap();
        assert_eq!((trace.events.len(), trace.passed_over), (1, 1));
    }

    #[test]
    fn broken_xz_is_refused() {
        let mut bytes = XZ_MAGIC.to_vec();
        bytes.extend([0; 40]);
        assert!(unpack(bytes).unwrap_err().to_string().starts_with("its xz data is broken"));
    }
}
