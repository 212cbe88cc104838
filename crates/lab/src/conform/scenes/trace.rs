//! Batches of reclaim and steps of compaction as a scene is played, to be held beside a kernel's own trace (`scripts/trace-scene`): where
//! both first differ says which rule is wrong, which counts at marks do not.

use std::cell::RefCell;
use std::fmt;

use mm::{Batch, CompactStep, Node, Traced};
use schemars::JsonSchema;
use serde::Serialize;

/// A batch of reclaim, a step of compaction, or a mark; pages are base pages.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct TraceRow {
    /// The mark that it follows, or that it is.
    pub mark: String,
    /// Whose work: `kswapd0`, …, or `program`.
    pub by: String,
    /// `shrink_inactive`, `shrink_active`; of compaction `isolate_migratepages`, `migratepages`, …; or `mark`.
    pub event: String,
    /// The list: `inactive_anon`, …
    pub list: String,
    /// Of compaction: the frames that it went over.
    pub frames: Option<Frames>,
    /// Looked at; of `migratepages` moved.
    pub scanned: u32,
    /// Taken off the list; of `migratepages` that stayed.
    pub taken: u32,
    /// Freed, or moved to the inactive list.
    pub gone: u32,
    /// That came back active, or stay so.
    pub active: u32,
    /// 12 at first, and less as it gets harder.
    pub priority: u32,
}

/// Frames from the first to before the last; of `begin` and `end` of compaction where its two scanners stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Frames {
    /// The first.
    pub from: u32,
    /// The one after the last.
    pub to: u32,
}

impl fmt::Display for TraceRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mark, by, event, list, frames, scanned, taken, gone, active, priority } = self;
        if event == MARK {
            return write!(f, "{MARK} {mark}");
        }
        if let Some(Frames { from, to }) = frames {
            return write!(f, "{by} {event} {from:#x} ~ {to:#x} scanned={scanned} taken={taken}");
        }
        write!(
            f,
            "{by} {event} {list} scanned={scanned} taken={taken} gone={gone} active={active} priority={priority}"
        )
    }
}

const MARK: &str = "mark";
const PROGRAM: &str = "program";

/// The rows, if anybody wants them.
#[derive(Debug, Default)]
pub(super) struct Trace(RefCell<Option<Vec<TraceRow>>>);

impl Trace {
    /// From now on rows are kept.
    pub(super) fn begin(&self) {
        *self.0.borrow_mut() = Some(vec![]);
    }

    /// What the kswapd of a node does, or a program.
    pub(super) fn hear(&self, kswapd: Option<Node>, what: Traced) {
        self.push(|before| TraceRow {
            mark: before.map(|row| row.mark.clone()).unwrap_or_default(),
            by: kswapd.map_or(PROGRAM.into(), |node| format!("kswapd{}", node.0)),
            ..match what {
                Traced::Batch(batch) => of_batch(batch),
                Traced::Compaction(step) => of_step(step),
            }
        });
    }

    /// The program said a mark.
    pub(super) fn mark(&self, label: &str) {
        self.push(|_| TraceRow {
            mark: label.into(),
            by: PROGRAM.into(),
            event: MARK.into(),
            ..TraceRow::default()
        });
    }

    /// All rows since it began.
    pub(super) fn take(&self) -> Vec<TraceRow> {
        self.0.take().unwrap_or_default()
    }

    fn push(&self, row: impl FnOnce(Option<&TraceRow>) -> TraceRow) {
        if let Some(rows) = self.0.borrow_mut().as_mut() {
            let row = row(rows.last());
            rows.push(row);
        }
    }
}

fn of_batch(Batch { event, lru, scanned, taken, gone, active, priority }: Batch) -> TraceRow {
    TraceRow {
        event: event.trim_start_matches("mm_vmscan_lru_").into(),
        list: lru.trim_start_matches("nr_").into(),
        scanned,
        taken,
        gone,
        active,
        priority,
        ..TraceRow::default()
    }
}

fn of_step(CompactStep { event, frames: (from, to), scanned, taken }: CompactStep) -> TraceRow {
    let frames = Some(Frames { from: from.0, to: to.0 });
    let event = event.trim_start_matches("mm_compaction_").into();
    TraceRow { event, frames, scanned, taken, ..TraceRow::default() }
}
