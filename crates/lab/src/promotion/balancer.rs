//! NUMA balancing as the knobs have it: whose window is due, what a hint fault does, and what each knob's default would have
//! decided. Whose pages these are, and when they are touched, is its users' to say: programs that follow a model (`world`), and
//! recorded ones ([`crate::replay`]).

use std::cell::RefCell;

use mm::tier::{Balancing, BalancingSettings, HintFault, HintGround, HintScan, Mode, Moved};
use mm::vm::SpaceId;
use mm::{Knob, KnobUse, Nanos, Node};

use crate::stage::Stage;

/// The knobs of NUMA balancing.
const KNOBS: [Knob; 7] = [
    Knob::NumaBalancing,
    Knob::PromoteRateLimit,
    Knob::BalancingScanDelay,
    Knob::BalancingPeriodMin,
    Knob::BalancingPeriodMax,
    Knob::BalancingScanSize,
    Knob::BalancingHotThreshold,
];

/// NUMA balancing of a machine.
#[derive(Debug)]
pub(crate) struct Balancer {
    in_force: Option<RefCell<Balancing>>,
    /// The same with each knob at its default that somebody set.
    watched: Vec<(Knob, RefCell<Balancing>)>,
    /// What it would be by default, where it was turned off.
    turned_on: Option<BalancingSettings>,
}

impl Balancer {
    /// As the knobs stand.
    pub(crate) fn new(stage: &Stage) -> Self {
        let knobs = stage.mm.knobs();
        let in_force = settings(|knob| knobs.get(knob));
        let by_default =
            |of: Knob| settings(|knob| if knob == of { of.spec().default } else { knobs.get(knob) });
        let nodes = stage.mm.topology().nodes.len() as u16;
        let set = KNOBS.into_iter().filter(|knob| in_force.is_some() && knobs.is_set(*knob));
        let watched =
            set.filter_map(|knob| Some((knob, RefCell::new(Balancing::new(by_default(knob)?, nodes)))));
        let watched: Vec<(Knob, RefCell<Balancing>)> = watched.collect();
        let is_off = in_force.is_none() && knobs.is_set(Knob::NumaBalancing);
        let turned_on = is_off.then(|| by_default(Knob::NumaBalancing)).flatten();
        let in_force = in_force.map(|settings| RefCell::new(Balancing::new(settings, nodes)));
        Self { in_force, watched, turned_on }
    }

    /// Its settings; `None` where it is off.
    pub(crate) fn settings(&self) -> Option<BalancingSettings> {
        self.in_force.as_ref().map(|balancing| *balancing.borrow().settings())
    }

    /// Its settings; where it was turned off, those that it would have by default. `None` where nobody asks for either.
    pub(crate) fn asked_for(&self) -> Option<BalancingSettings> {
        self.settings().or(self.turned_on)
    }

    /// As [`Self::begin`], without a delay by the clock on the wall: of a program that comes by exec, its task's own time is waited
    /// for alone.
    pub(crate) fn begin_at_once(&self, space: SpaceId, now: Nanos) -> Option<HintScan> {
        let settings = BalancingSettings { delay: Nanos(0), ..self.asked_for()? };
        Some(HintScan::new(space, now, &settings))
    }

    /// The windows over an address space that is born `now`; `None` where nobody asks for any.
    pub(crate) fn begin(&self, space: SpaceId, now: Nanos) -> Option<HintScan> {
        let settings = self.asked_for()?;
        Some(HintScan::new(space, now, &settings))
    }

    /// The fault of a page of `bytes`: where the page is to go, if anywhere.
    pub(crate) fn fault(&self, fault: HintFault, bytes: u64, ground: &impl HintGround) -> Option<Node> {
        let to = self.in_force.as_ref()?.borrow_mut().fault(fault, bytes, ground);
        for (knob, other) in &self.watched {
            let by_default = other.borrow_mut().fault(fault, bytes, ground);
            ground.knob_used(*knob, KnobUse::of(&to, &by_default));
        }
        to
    }

    /// Whether `node` may take a page more and stay above its high mark (`migrate_balanced_pgdat`). Where pages are promoted,
    /// kswapd is told if not.
    pub(crate) fn has_room(&self, stage: &Stage, node: Node) -> bool {
        let has_room = stage.mm.reclaim().has_room_above_high(node);
        if !has_room && self.settings().is_some_and(|settings| settings.mode != Mode::Normal) {
            stage.mm.reclaim().make_room(node);
        }
        has_room
    }

    /// What the fault says of when the next window should come, of a program with `resident` bytes. While a window is being
    /// marked nobody counts.
    pub(crate) fn note(
        &self,
        scan: &RefCell<Option<HintScan>>,
        (fault, moved): (HintFault, Moved),
        resident: u64,
        ground: &impl HintGround,
    ) {
        let Some(balancing) = self.in_force.as_ref().map(RefCell::borrow) else { return };
        let counts = balancing.counts(fault, ground);
        for (knob, other) in self.watched.iter().filter(|(knob, _)| *knob == Knob::NumaBalancing) {
            ground.knob_used(*knob, KnobUse::of(&counts, &other.borrow().counts(fault, ground)));
        }
        if !counts {
            return;
        }
        if let Some(scan) = scan.borrow_mut().as_mut() {
            scan.note(fault, moved, resident, balancing.settings());
        }
    }

    /// Marks the next window if it is due; gives the pages marked.
    pub(crate) fn mark(&self, scan: &RefCell<Option<HintScan>>, ground: &impl HintGround) -> u64 {
        if let Some(settings) = self.settings() {
            self.watch_delay(scan, &settings, ground);
        }
        self.mark_due(scan, ground, |scan, settings| scan.mark(ground, settings))
    }

    /// The same, by `mark`, and the delay of the first window is somebody else's to watch.
    pub(crate) fn mark_due(
        &self,
        scan: &RefCell<Option<HintScan>>,
        ground: &impl HintGround,
        mark: impl FnOnce(&mut HintScan, &BalancingSettings) -> u64,
    ) -> u64 {
        let Some(settings) = self.settings() else { return 0 };
        let taken = scan.borrow_mut().take_if(|scan| scan.is_due(ground.now()));
        let Some(mut taken) = taken else { return 0 };
        let by_period =
            |other: &BalancingSettings| KnobUse::of(&taken.period_by(&settings), &taken.period_by(other));
        self.watch(ground, by_period, &[Knob::BalancingPeriodMin, Knob::BalancingPeriodMax]);
        let marked = mark(&mut taken, &settings);
        let is_other = |other: &BalancingSettings| taken.would_be_other(marked, &settings, other);
        self.watch(ground, |other| KnobUse::of(&is_other(other), &false), &[Knob::BalancingScanSize]);
        let by_heat = |settings: &BalancingSettings| settings.mode == Mode::Tiering;
        let used = |other: &BalancingSettings| KnobUse::of(&by_heat(&settings), &by_heat(other));
        self.watch(ground, used, &[Knob::NumaBalancing]);
        scan.replace(Some(taken));
        marked
    }

    /// Says of each of `knobs` that somebody set what its default would have decided.
    pub(crate) fn watch(
        &self,
        ground: &impl HintGround,
        used: impl Fn(&BalancingSettings) -> KnobUse,
        knobs: &[Knob],
    ) {
        for (knob, other) in self.watched.iter().filter(|(knob, _)| knobs.contains(knob)) {
            ground.knob_used(*knob, used(other.borrow().settings()));
        }
    }

    /// Whether the program's first window is due, and whether it would be by default.
    fn watch_delay(
        &self,
        scan: &RefCell<Option<HintScan>>,
        settings: &BalancingSettings,
        ground: &impl HintGround,
    ) {
        let (scan, now) = (scan.borrow(), ground.now());
        let Some(scan) = &*scan else { return };
        let due = |other: &BalancingSettings| scan.would_be_due(now, settings, other);
        let used = |other: &BalancingSettings| KnobUse::of(&scan.is_due(now), &due(other));
        self.watch(ground, used, &[Knob::BalancingScanDelay]);
    }

    /// NUMA balancing is off: by default a window would be marked once one is due.
    pub(crate) fn watch_off(scan: &RefCell<Option<HintScan>>, ground: &impl HintGround) {
        if let Some(scan) = &*scan.borrow() {
            let is_due = scan.is_due(ground.now());
            ground.knob_used(Knob::NumaBalancing, KnobUse::of(&is_due, &false));
        }
    }
}

/// How NUMA balancing works, if it does.
fn settings(knob: impl Fn(Knob) -> u64) -> Option<BalancingSettings> {
    let ms = |of: Knob| Nanos(knob(of) * 1_000_000);
    let mode = match knob(Knob::NumaBalancing) {
        0 => return None,
        1 => Mode::Normal,
        2 => Mode::Tiering,
        _ => Mode::Both,
    };
    Some(BalancingSettings {
        mode,
        delay: ms(Knob::BalancingScanDelay),
        period_min: ms(Knob::BalancingPeriodMin),
        period_max: ms(Knob::BalancingPeriodMax),
        window: knob(Knob::BalancingScanSize) << 20,
        hot: ms(Knob::BalancingHotThreshold),
        rate_limit: knob(Knob::PromoteRateLimit).saturating_mul(1_000_000),
    })
}
