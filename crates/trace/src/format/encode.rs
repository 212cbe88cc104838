//! From events to the columns of a chunk.

use mm::{Cpu, Pfn, TaskId};

use super::codec::{Column, TAG_ATTR, TAG_CPU, TAG_TASK};
use super::context::Context;
use super::varint::{put, zigzag};
use crate::event::field::{FieldSink, Frames};
use crate::event::{Event, EventKind};

/// The time of a chunk's first event, and the highest; 0 where it has none. In ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkTimes {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Collects the events of one chunk.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    columns: [Vec<u8>; Column::COUNT],
    contexts: Vec<Context>,
    cpu: Cpu,
    first_time: u64,
    last_time: u64,
    highest_time: u64,
    count: usize,
}

impl Encoder {
    /// Adds `event`.
    pub(super) fn push(&mut self, event: &Event) {
        let time = event.time.0;
        if self.count == 0 {
            self.first_time = time;
            self.last_time = time;
        }
        self.put_signed(Column::Time, time.wrapping_sub(self.last_time) as i64);
        self.last_time = time;
        self.highest_time = self.highest_time.max(time);
        self.count += 1;

        let mut tag = event.kind.index() as u8;
        if event.cpu != self.cpu {
            tag |= TAG_CPU;
            self.cpu = event.cpu;
            self.put(Column::Cpu, u64::from(event.cpu.0));
        }
        let cpu = usize::from(event.cpu.0);
        if cpu >= self.contexts.len() {
            self.contexts.resize(cpu + 1, Context::default());
        }
        if event.task != self.contexts[cpu].task {
            tag |= TAG_TASK;
            self.contexts[cpu].task = event.task;
            self.put(Column::Task, u64::from(event.task.0));
        }
        tag |= self.push_attr(cpu, event);
        self.columns[Column::Tag as usize].push(tag);
        event.kind.put(self);
    }

    fn push_attr(&mut self, cpu: usize, event: &Event) -> u8 {
        let attr = event.kind.attr();
        let last = &mut self.contexts[cpu].attr[event.kind.index()];
        if *last == attr {
            return 0;
        }
        *last = attr;
        self.put(Column::Attr, attr.first);
        if EventKind::has_rest(event.kind.index()) {
            attr.rest.iter().for_each(|&value| self.put(Column::Attr, u64::from(value)));
        }
        TAG_ATTR
    }

    #[inline]
    fn put(&mut self, column: Column, value: u64) {
        put(&mut self.columns[column as usize], value);
    }

    #[inline]
    fn put_signed(&mut self, column: Column, value: i64) {
        self.put(column, zigzag(value));
    }

    /// What the CPU of the event was last seen to do.
    fn context(&mut self) -> &mut Context {
        &mut self.contexts[usize::from(self.cpu.0)]
    }

    /// Events added since the last [`Encoder::finish`].
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Bytes that the chunk has before compression, its head aside.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// The first event's time and the highest.
    pub(super) const fn times(&self) -> ChunkTimes {
        ChunkTimes { first: self.first_time, last: self.highest_time }
    }

    /// Writes the chunk's payload into `out` and starts the next chunk.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        put(out, self.count as u64);
        put(out, self.first_time);
        put(out, Column::COUNT as u64);
        for column in &self.columns {
            put(out, column.len() as u64);
        }
        for column in &mut self.columns {
            out.extend_from_slice(column);
            column.clear();
        }
        self.contexts.clear();
        self.cpu = Cpu(0);
        self.count = 0;
        self.highest_time = 0;
    }
}

impl FieldSink for Encoder {
    #[inline]
    fn frame(&mut self, of: Frames, pfn: Pfn) {
        let last = &mut self.context().pfn[of as usize];
        let delta = i64::from(pfn.0) - i64::from(*last);
        *last = pfn.0;
        self.put_signed(Column::of_frames(of), delta);
    }

    fn number(&mut self, value: u32) {
        self.put(Column::Other, u64::from(value));
    }

    fn next_task(&mut self, task: TaskId) {
        self.number(task.0);
        self.context().task = task;
    }

    fn address(&mut self, address: u64) {
        let last = core::mem::replace(&mut self.context().address, address);
        self.put_signed(Column::Address, address.wrapping_sub(last) as i64);
    }

    fn instruction(&mut self, ip: u64) {
        let last = core::mem::replace(&mut self.context().ip, ip);
        self.put_signed(Column::Ip, ip.wrapping_sub(last) as i64);
    }
}
