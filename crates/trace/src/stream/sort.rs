//! Puts the records of several CPUs in order of time.
//!
//! The records of one CPU come nearly in order; the CPUs come one after the other. From time to time the reader gives a
//! horizon: no older record will come. All records before the horizon are then handed on, sorted.

use super::record::RecordHead;

/// A record that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Item {
    time: u64,
    head: RecordHead,
    cpu: u32,
    start: usize,
    len: usize,
}

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    items: Vec<Item>,
    bytes: Vec<u8>,
    kept: Vec<u8>,
}

impl Sorter {
    /// Adds the record with this head and body, of `cpu`.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, cpu: u32, head: RecordHead, body: &[u8]) {
        self.items.push(Item { time, head, cpu, start: self.bytes.len(), len: body.len() });
        self.bytes.extend_from_slice(body);
    }

    /// Hands the records up to `horizon` to `take` (CPU, head, body), in order; those of one time as they came.
    ///
    /// # Errors
    /// What `take` says; records are lost then.
    pub(crate) fn release<E>(
        &mut self,
        horizon: u64,
        mut take: impl FnMut(u32, RecordHead, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // A stable sort: it finds the runs that each CPU's records form, and merges them.
        self.items.sort_by_key(|item| item.time);
        let due = self.items.partition_point(|item| item.time <= horizon);
        for item in &self.items[..due] {
            take(item.cpu, item.head, &self.bytes[item.start..item.start + item.len])?;
        }
        self.items.drain(..due);
        self.kept.clear();
        for item in &mut self.items {
            let start = self.kept.len();
            self.kept.extend_from_slice(&self.bytes[item.start..item.start + item.len]);
            item.start = start;
        }
        std::mem::swap(&mut self.bytes, &mut self.kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn cpus_are_merged_up_to_the_horizon() {
        let mut sorter = Sorter::default();
        for (time, cpu) in [(1, 0), (4, 0), (9, 0), (2, 1), (4, 1), (8, 1)] {
            sorter.push(time, cpu, RecordHead { kind: 9, misc: 0 }, &[time as u8, cpu as u8]);
        }
        let mut seen = vec![];
        let mut take = |cpu: u32, _, body: &[u8]| {
            assert_eq!(cpu, u32::from(body[1]));
            seen.push((body[0], body[1]));
            Ok::<_, Infallible>(())
        };
        sorter.release(4, &mut take).unwrap();
        sorter.push(7, 0, RecordHead { kind: 9, misc: 0 }, &[7, 0]);
        sorter.release(u64::MAX, &mut take).unwrap();
        assert_eq!(seen, [(1, 0), (2, 1), (4, 0), (4, 1), (7, 0), (8, 1), (9, 0)]);
    }
}
