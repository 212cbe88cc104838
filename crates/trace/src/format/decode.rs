//! From the columns of a chunk to events. This is what a replay waits for: one pass, no allocation per event.

use mm::{Cpu, Nanos, Pfn, TaskId};

use super::CHUNK_EVENTS;
use super::codec::{Column, TAG_ATTR, TAG_CPU, TAG_KIND, TAG_TASK};
use super::context::Context;
use super::varint::Cursor;
use crate::event::field::{Attr, FieldSource, Frames};
use crate::event::{Event, EventKind, NameId};

/// What an event may refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// CPU numbers are below this.
    pub(super) cpus: u32,
    /// Task numbers are below this.
    pub(super) tasks: u32,
    /// Name numbers are below this.
    pub(super) names: u32,
}

/// Reads the events of one chunk after another.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    limits: Limits,
    bytes: Vec<u8>,
    columns: [Cursor; Column::COUNT],
    contexts: Vec<Context>,
    cpu: usize,
    time: u64,
    left: usize,
}

impl Decoder {
    /// Events may refer to what `limits` says.
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The buffer that the next chunk's payload goes into, before [`Decoder::start`].
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Begins with the payload in the buffer.
    ///
    /// # Errors
    /// Says what is wrong with the chunk's head.
    pub(super) fn start(&mut self) -> Result<(), &'static str> {
        self.left = 0;
        let mut head = Cursor::new(0, self.bytes.len());
        let count = head.next(&self.bytes);
        self.time = head.next(&self.bytes);
        let columns = head.next(&self.bytes);
        if count > CHUNK_EVENTS as u64 {
            return Err("more events in a chunk than there may be");
        }
        if columns < Column::COUNT as u64 || columns > 64 {
            return Err("columns are missing");
        }
        let mut lens = [0; 64];
        lens[..columns as usize].fill_with(|| head.next(&self.bytes));
        if head.is_overrun() {
            return Err("the chunk's head is cut short");
        }
        let mut at = head.position() as u64;
        for (index, len) in lens.into_iter().enumerate() {
            let end = at.checked_add(len).filter(|&end| end <= self.bytes.len() as u64);
            let end = end.ok_or("a column is longer than the chunk")?;
            if let Some(column) = self.columns.get_mut(index) {
                *column = Cursor::new(at as usize, end as usize);
            }
            at = end;
        }
        if lens[Column::Tag as usize] != count {
            return Err("not one tag for each event");
        }
        if count > 0 && (self.limits.tasks == 0 || self.limits.cpus == 0) {
            return Err("events without a task or a CPU");
        }
        self.contexts.clear();
        self.contexts.push(Context::default());
        self.cpu = 0;
        self.left = count as usize;
        Ok(())
    }

    /// The next event of the chunk; `None` after the last.
    ///
    /// # Errors
    /// Says what is wrong with the event. What follows it in the chunk cannot be read.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Result<Event, &'static str>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let event = self.decode();
        if event.is_none() {
            self.left = 0;
        }
        Some(event.ok_or("an event has a field that cannot be"))
    }

    #[inline]
    fn decode(&mut self) -> Option<Event> {
        let tag = self.tag();
        let delta = self.columns[Column::Time as usize].next_signed(&self.bytes);
        self.time = self.time.wrapping_add(delta as u64);
        if tag & TAG_CPU != 0 {
            self.change_cpu()?;
        }
        if tag & TAG_TASK != 0 {
            let task = self.take(Column::Task);
            self.context().task = self.known_task(task)?;
        }
        let kind = usize::from(tag & TAG_KIND);
        if kind >= EventKind::COUNT {
            return None;
        }
        if tag & TAG_ATTR != 0 {
            self.change_attr(kind)?;
        }
        let task = self.contexts[self.cpu].task;
        let attr = self.contexts[self.cpu].attr[kind];
        let kind = EventKind::take(kind, &attr, self)?;
        if self.columns[Column::Time as usize].is_overrun() {
            return None;
        }
        Some(Event { time: Nanos(self.time), cpu: Cpu(self.cpu as u16), task, kind })
    }

    #[inline]
    fn tag(&mut self) -> u8 {
        let column = &mut self.columns[Column::Tag as usize];
        let at = column.position();
        *column = Cursor::new(at + 1, column.end());
        self.bytes[at]
    }

    #[inline]
    fn take(&mut self, column: Column) -> u64 {
        self.columns[column as usize].next(&self.bytes)
    }

    #[inline]
    fn context(&mut self) -> &mut Context {
        &mut self.contexts[self.cpu]
    }

    fn change_cpu(&mut self) -> Option<()> {
        let cpu = self.take(Column::Cpu);
        if cpu >= u64::from(self.limits.cpus) || self.columns[Column::Cpu as usize].is_overrun() {
            return None;
        }
        self.cpu = cpu as usize;
        if self.cpu >= self.contexts.len() {
            self.contexts.resize(self.cpu + 1, Context::default());
        }
        Some(())
    }

    fn change_attr(&mut self, kind: usize) -> Option<()> {
        let mut attr = Attr { first: self.take(Column::Attr), rest: [0; 4] };
        if EventKind::has_rest(kind) {
            attr.rest.fill_with(|| self.columns[Column::Attr as usize].next(&self.bytes) as u32);
        }
        self.context().attr[kind] = attr;
        (!self.columns[Column::Attr as usize].is_overrun()).then_some(())
    }

    fn other(&mut self, limit: u32) -> Option<u32> {
        let value = self.take(Column::Other);
        let fits = value < u64::from(limit) && !self.columns[Column::Other as usize].is_overrun();
        fits.then_some(value as u32)
    }

    fn known_task(&self, task: u64) -> Option<TaskId> {
        let fits = task < u64::from(self.limits.tasks) && !self.columns[Column::Task as usize].is_overrun();
        fits.then_some(TaskId(task as u32))
    }
}

impl FieldSource for Decoder {
    #[inline]
    fn frame(&mut self, of: Frames) -> Option<Pfn> {
        let column = Column::of_frames(of);
        let delta = self.columns[column as usize].next_signed(&self.bytes);
        let last = &mut self.contexts[self.cpu].pfn[of as usize];
        let pfn = i64::from(*last).checked_add(delta)?;
        *last = u32::try_from(pfn).ok()?;
        if self.columns[column as usize].is_overrun() { None } else { Some(Pfn(*last)) }
    }

    fn address(&mut self) -> Option<u64> {
        let delta = self.columns[Column::Address as usize].next_signed(&self.bytes);
        let context = self.context();
        context.address = context.address.wrapping_add(delta as u64);
        let address = context.address;
        if self.columns[Column::Address as usize].is_overrun() { None } else { Some(address) }
    }

    fn instruction(&mut self) -> Option<u64> {
        let delta = self.columns[Column::Ip as usize].next_signed(&self.bytes);
        let context = self.context();
        context.ip = context.ip.wrapping_add(delta as u64);
        let ip = context.ip;
        if self.columns[Column::Ip as usize].is_overrun() { None } else { Some(ip) }
    }

    fn task(&mut self) -> Option<TaskId> {
        self.other(self.limits.tasks).map(TaskId)
    }

    fn next_task(&mut self) -> Option<TaskId> {
        let next = self.other(self.limits.tasks).map(TaskId)?;
        self.context().task = next;
        Some(next)
    }

    fn name(&mut self) -> Option<NameId> {
        self.other(self.limits.names).map(NameId)
    }

    fn name_of(&self, number: u64) -> Option<NameId> {
        (number < u64::from(self.limits.names)).then_some(NameId(number as u32))
    }
}
