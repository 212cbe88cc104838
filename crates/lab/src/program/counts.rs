//! What the recorded kernel did, counted from its events and its own accounts: to be compared with, never to be replayed from.

use trace::{EventKind, Gfp, Meta, RecordingEnd, Usage};

/// What was counted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counted {
    /// Faults of the program's tasks in its own address spaces.
    pub faults: u64,
    /// Those to write to a page that was there, or to a file's that nobody else is to see: copies, and pages that nobody else had
    /// any more.
    pub writes_to_shared: u64,
    /// What recording took of the tasks' time, ns.
    pub recorder_ns: u64,
    /// Of that, accessed bits that were cleared and came back.
    pub bits_ns: f64,
    /// Blocks of user memory (`__GFP_MOVABLE`, order 0 and more) that its tasks were given; 0 without page events.
    pub pages_allocated: u64,
    /// From the beginning of the recording to the program's last event, ns.
    pub wall_ns: u64,
    /// The kernel's own account of the command, if there was one.
    pub usage: Option<Usage>,
    /// Page events that were counted only, for a budget of the recording; 0 where all were recorded.
    pub page_events_counted: u64,
    /// Of [`Self::pages_allocated`], those of such events.
    pub pages_counted: u64,
    /// Of so many units of frames the page events of one were recorded at the end; 1: all.
    pub page_events_one_in: u32,
    /// Whether the recording has page events.
    pub has_page_events: bool,
    /// Whether huge pages were off while it was recorded.
    pub without_huge_pages: bool,
}

impl Counted {
    /// What is known before the first event.
    pub(super) fn new(meta: &Meta) -> Self {
        let has_page_events = meta.tracepoints.iter().any(|name| name == "kmem:mm_page_alloc");
        Self { has_page_events, without_huge_pages: meta.without_huge_pages, ..Self::default() }
    }

    /// The program did something at `time`.
    pub(super) fn went_on(&mut self, time: u64) {
        self.wall_ns = time;
    }

    /// An event that is only counted. Gives how many pages of user memory it hands out.
    pub(super) fn page_event(&mut self, kind: &EventKind) -> u32 {
        let EventKind::PageAlloc { order, gfp, .. } = kind else { return 0 };
        let pages = if gfp.contains(Gfp::MOVABLE) { order.pages() } else { 0 };
        self.pages_allocated += u64::from(pages);
        pages
    }

    /// What is known at the end, of a recording with so many events of the program.
    pub(super) fn ended(&mut self, meta: &Meta, end: Option<&RecordingEnd>, events: u64) {
        self.recorder_ns = meta.cost.map_or(0, |cost| (cost.ns_per_event * events as f64) as u64);
        self.recorder_ns += self.bits_ns as u64;
        if let Some(end) = end {
            self.usage = end.usage;
            if let Some(sampled) = &end.sampled {
                self.recorder_ns += sampled.counted_ns;
                self.page_events_counted = sampled.page_events_counted;
                self.pages_counted = sampled.user_pages_counted;
                self.pages_allocated += sampled.user_pages_counted;
                self.page_events_one_in = sampled.steps.last().map_or(1, |step| step.page_events_one_in);
            }
        }
        self.wall_ns = self.wall_ns.saturating_sub(meta.start_ns);
    }
}
