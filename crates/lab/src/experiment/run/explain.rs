//! Where the mean of a refill or drain comes from, out of what the simulator booked to it.

use mm::{LockClass, Span};
use sim::{Level, Measurements, TimedCount};

use crate::measurements::{Explanation, Part};

/// The spans that are explained. Both have no other span within them, so that all of their time is booked to them.
const SPANS: [Span; 2] = [Span::Refill, Span::Drain];

/// The spans of a variant that happened, over all of its repetitions.
pub(super) fn explanations<'a>(
    variant: &str,
    measured: &(impl Iterator<Item = &'a Measurements> + Clone),
) -> Vec<Explanation> {
    let of = |span| explanation(variant, span, measured.clone());
    SPANS.into_iter().map(of).filter(|explanation| explanation.count > 0).collect()
}

fn explanation<'a>(
    variant: &str,
    span: Span,
    measured: impl Iterator<Item = &'a Measurements>,
) -> Explanation {
    let mut sum = Sums::default();
    for measured in measured {
        sum.add(span, measured);
    }
    let mut parts = vec![part("waiting for the zone lock", sum.wait)];
    parts.push(part("waiting for other locks", sum.other_wait));
    parts.push(part("taking free locks", sum.taking));
    parts.push(part("lines touched", sum.touched()));
    parts.push(part("fixed instructions", sum.instructions));
    parts.push(part("clearing and copying", sum.memory));
    let booked: u64 = parts.iter().map(|part| part.ns).sum();
    // What is left is other work that came in between: interrupts, daemons, another task's time slice.
    parts.push(Part {
        name: "interrupted by others".into(),
        count: 0,
        ns: sum.total_ns.saturating_sub(booked),
    });
    // What is left after rounding is no part.
    parts.retain(|part| part.ns > sum.total_ns / 10_000);
    let touches = Level::ALL.into_iter().zip(sum.touches).map(|(level, tally)| part(level.name(), tally));
    Explanation {
        variant: variant.to_owned(),
        span: span.name().to_owned(),
        count: sum.count,
        pages: sum.pages,
        total_ns: sum.total_ns,
        parts,
        hand_overs: part("hand-overs of the zone lock", sum.hand_overs),
        holds: part("zone lock held", sum.hold),
        touches: touches.filter(|part| part.count > 0).collect(),
    }
}

fn part(name: &str, tally: TimedCount) -> Part {
    Part { name: name.to_owned(), count: tally.count, ns: tally.time.0 }
}

/// What was booked to a kind of span, over repetitions.
#[derive(Default)]
struct Sums {
    count: u64,
    pages: u64,
    total_ns: u64,
    wait: TimedCount,
    other_wait: TimedCount,
    hand_overs: TimedCount,
    taking: TimedCount,
    hold: TimedCount,
    touches: [TimedCount; Level::COUNT],
    instructions: TimedCount,
    memory: TimedCount,
}

impl Sums {
    fn add(&mut self, span: Span, measured: &Measurements) {
        let stats = measured.span(span);
        let cost = measured.cost(span);
        self.count += stats.latency.count();
        self.pages += stats.pages();
        self.total_ns += stats.latency.total().0;
        for class in LockClass::ALL {
            let wait = if class == LockClass::Zone { &mut self.wait } else { &mut self.other_wait };
            add(wait, cost.waits[class as usize]);
        }
        add(&mut self.hold, cost.holds[LockClass::Zone as usize]);
        add(&mut self.hand_overs, cost.hand_overs);
        add(&mut self.taking, cost.lock_taking);
        add(&mut self.instructions, cost.instructions);
        add(&mut self.memory, cost.memory);
        for (mine, theirs) in self.touches.iter_mut().zip(cost.touches) {
            add(mine, theirs);
        }
    }

    fn touched(&self) -> TimedCount {
        let mut all = TimedCount::default();
        for touches in self.touches {
            add(&mut all, touches);
        }
        all
    }
}

fn add(sum: &mut TimedCount, more: TimedCount) {
    sum.count += more.count;
    sum.time.0 += more.time.0;
}
