//! From events to the columns of a chunk.

use mm::{Cpu, Pfn, TaskId};

use super::codec::{Column, TAG_ATTR, TAG_CPU, TAG_TASK};
use super::context::{Attr, Context};
use super::varint::{put, zigzag};
use crate::event::{Event, EventKind};

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
        self.push_fields(cpu, &event.kind);
    }

    fn push_attr(&mut self, cpu: usize, event: &Event) -> u8 {
        let attr = Attr::of(event);
        let last = &mut self.contexts[cpu].attr[event.kind.index()];
        if *last == attr {
            return 0;
        }
        *last = attr;
        self.put(Column::Attr, attr.first);
        if matches!(event.kind, EventKind::SlabAlloc { .. }) {
            attr.rest.iter().for_each(|&value| self.put(Column::Attr, u64::from(value)));
        }
        TAG_ATTR
    }

    fn push_fields(&mut self, cpu: usize, kind: &EventKind) {
        match *kind {
            EventKind::PageAlloc { pfn, .. } => self.put_pfn(cpu, Column::Alloc, pfn),
            EventKind::PageFree { pfn, .. } => self.put_pfn(cpu, Column::Free, pfn),
            EventKind::PageFreeBatched { pfn } => self.put_pfn(cpu, Column::Batched, pfn),
            EventKind::ZoneLocked { pfn, .. } => self.put_pfn(cpu, Column::Locked, pfn),
            EventKind::PcpuDrain { pfn, .. } => self.put_pfn(cpu, Column::Drained, pfn),
            EventKind::Switch { next, .. } => {
                self.put(Column::Other, u64::from(next.0));
                self.contexts[cpu].task = next;
            }
            EventKind::Fork { child: TaskId(other) } => self.put(Column::Other, u64::from(other)),
            EventKind::Mark { text } => self.put(Column::Other, u64::from(text.0)),
            EventKind::Fault { address, ip, .. } => {
                self.put_address(cpu, address);
                let delta = ip.wrapping_sub(self.contexts[cpu].ip);
                self.contexts[cpu].ip = ip;
                self.put_signed(Column::Ip, delta as i64);
            }
            EventKind::SlabAlloc { object: address, .. }
            | EventKind::SlabFree { object: address, .. }
            | EventKind::ContentionBegin { lock: address, .. }
            | EventKind::ContentionEnd { lock: address, .. } => self.put_address(cpu, address),
            EventKind::PageAllocFailed { .. } | EventKind::Exit | EventKind::Lost { .. } => {}
        }
    }

    #[inline]
    fn put(&mut self, column: Column, value: u64) {
        put(&mut self.columns[column as usize], value);
    }

    #[inline]
    fn put_signed(&mut self, column: Column, value: i64) {
        self.put(column, zigzag(value));
    }

    fn put_pfn(&mut self, cpu: usize, column: Column, pfn: Pfn) {
        let last = &mut self.contexts[cpu].pfn[column as usize - Column::FIRST_PFN];
        let delta = i64::from(pfn.0) - i64::from(*last);
        *last = pfn.0;
        self.put_signed(column, delta);
    }

    fn put_address(&mut self, cpu: usize, address: u64) {
        let delta = address.wrapping_sub(self.contexts[cpu].address);
        self.contexts[cpu].address = address;
        self.put_signed(Column::Address, delta as i64);
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
    pub(super) const fn times(&self) -> (u64, u64) {
        (self.first_time, self.highest_time)
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
