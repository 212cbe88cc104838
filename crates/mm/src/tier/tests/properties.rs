//! Whatever address spaces do: what kmmscand's revisions and the seeker want is slow, mapped and was accessed, lists lose nothing,
//! and periods and sizes keep within their bounds.

use proptest::prelude::*;

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, SpaceId};

const SPACES: u32 = 4;
const REVISIONS: [Revision; 5] = [V0, V0_NOTHROTTLE, V1, V2, V3];

/// Pages without area before, area, its pages in use from its start on, their node and their accesses.
type Piece = (u32, u32, u32, u16, Access);

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::NEVER),
        Just(Access::ALWAYS),
        (0..20_000u64).prop_map(|at| Access::once(at * MS)),
        (0..20_000u64, 0..20_000u64, 1..5000u64).prop_map(|(from, length, every)| Access {
            from: from * MS,
            until: (from + length) * MS,
            every: every * MS,
        }),
    ]
}

fn piece() -> impl Strategy<Value = Piece> {
    let area = prop_oneof![1..1000u32, 1..2 * GIB];
    (prop_oneof![Just(0), 0..2 * GIB], area, 0..600u32, 0..3u16, access())
}

#[derive(Clone, Debug)]
enum Step {
    Sleep(u64),
    Cycle,
    Move(usize),
    Add(u32, Piece),
    Unscanned(u32, u32),
    Busy(u32, bool),
    End(u32),
    Room(u16, u64),
    Pin(u32),
    Unmap(u32),
    Scalar(u32, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = || (0..4 * GIB).prop_map(|page| page % 2000);
    let step = prop_oneof![
        4 => (1..6000u64).prop_map(Step::Sleep),
        6 => Just(Step::Cycle),
        4 => (1..600usize).prop_map(Step::Move),
        4 => (0..SPACES, piece()).prop_map(|(space, piece)| Step::Add(space, piece)),
        1 => (0..SPACES, 1..4 * GIB).prop_map(|(space, pages)| Step::Unscanned(space, pages)),
        1 => (0..SPACES, any::<bool>()).prop_map(|(space, is_busy)| Step::Busy(space, is_busy)),
        1 => (0..SPACES).prop_map(Step::End),
        1 => (0..2u16, prop::sample::select(&[0, 4096, 1 << 20, 1 << 40][..])).prop_map(|(node, room)| Step::Room(node, room)),
        1 => page().prop_map(Step::Pin),
        1 => page().prop_map(Step::Unmap),
        1 => (0..SPACES, any::<u8>()).prop_map(|(space, scalar)| Step::Scalar(space, scalar)),
    ];
    prop::collection::vec(step, 1..60)
}

/// Who looks.
enum Scanner {
    Kmmscand(Kmmscand),
    Seeker(Seeker),
}

impl Scanner {
    /// What it wants now.
    fn cycle(&mut self, world: &World, mover: &Mover) -> Vec<WantedPage> {
        let mut wanted = vec![];
        let pause = match self {
            Self::Kmmscand(daemon) => daemon.cycle(world, || mover.feedback(), &mut |page| wanted.push(page)),
            Self::Seeker(seeker) => seeker.round(world, 0, &mut |page| wanted.push(page)),
        };
        assert!(pause.0 > 0);
        world.sleep(pause);
        wanted
    }

    fn check(&mut self) {
        let Self::Kmmscand(daemon) = self else { return };
        let Revision { size, period, has_feedback, .. } = *daemon.revision();
        for space in 0..SPACES {
            let Some(slot) = daemon.slot(SpaceId(space)) else { continue };
            // Failed migrations make a period up to eleven times as long.
            let longest = period.max.0 * if has_feedback { 11 } else { 1 };
            assert!(period.min <= slot.period() && slot.period().0 <= longest);
            match size {
                Some(size) => assert!(size.min <= slot.size() && slot.size() <= size.max),
                None => assert_eq!(slot.size(), u64::MAX),
            }
        }
    }
}

/// What has come of the steps so far.
struct Life {
    world: World,
    scanner: Scanner,
    wanted: Wanted,
    mover: Mover,
    /// Where each address space ends.
    top: [u32; SPACES as usize],
    /// Pages that wait, as a list that is nothing but one.
    waiting: Vec<WantedPage>,
}

impl Life {
    fn new(mut scanner: Scanner) -> Self {
        let world = World::new();
        for space in 0..SPACES {
            world.area(space, 0, 0);
            match &mut scanner {
                Scanner::Kmmscand(daemon) => daemon.enter(SpaceId(space), &world),
                Scanner::Seeker(seeker) => seeker.enter(SpaceId(space)),
            }
        }
        let (wanted, mover) = (Wanted::default(), Mover::new(Flush::EachBatch));
        Self { world, scanner, wanted, mover, top: [0; SPACES as usize], waiting: vec![] }
    }

    fn cycle(&mut self) {
        // So many that the seeker's second look is among them.
        let fresh: Vec<_> = (0..4).map(|_| self.scanner.cycle(&self.world, &self.mover)).collect();
        for page in fresh.into_iter().flatten() {
            assert_eq!(self.world.node_of(page.space, page.vpn), Some(SLOW), "{page:?}");
            assert!(self.world.was_accessed(page.space, page.vpn), "{page:?}");
            assert!(self.world.is_fast(page.node));
            self.wanted.push(page);
            self.waiting.push(page);
        }
        self.scanner.check();
    }

    fn migrate(&mut self, most: usize) {
        let batch = self.wanted.take(most);
        assert!(batch.len() <= most && batch.is_empty() == self.waiting.is_empty());
        for page in &batch {
            let at = self.waiting.iter().position(|other| other.space == page.space).unwrap();
            assert_eq!(self.waiting.remove(at), *page);
        }
        let pass = self.mover.work(&self.world, &batch);
        assert!(pass.moved + pass.failed <= batch.len() as u64 && pass.no_room <= pass.failed);
    }

    /// Makes `space` so many pages longer; where they begin.
    fn grow(&mut self, space: u32, pages: u32) -> u32 {
        let top = &mut self.top[space as usize];
        *top += pages;
        *top - pages
    }

    fn step(&mut self, step: &Step) {
        let is_alive = |space| self.world.is_alive(SpaceId(space));
        match *step {
            Step::Sleep(ms) => self.world.sleep(Nanos(ms * MS)),
            Step::Cycle => self.cycle(),
            Step::Move(most) => self.migrate(most),
            Step::Add(space, (gap, area, count, node, access)) if is_alive(space) => {
                let start = self.grow(space, gap + area) + gap;
                self.world.area(space, start, start + area);
                self.world.map(space, start, count.min(area), Node(node), access);
            }
            Step::Unscanned(space, pages) if is_alive(space) => {
                let start = self.grow(space, pages);
                self.world.unscanned(space, start, start + pages);
            }
            Step::Busy(space, is_busy) if is_alive(space) => self.world.set_busy(space, is_busy),
            Step::End(space) => {
                self.world.end(space);
                self.wanted.forget(SpaceId(space));
                self.waiting.retain(|page| page.space != SpaceId(space));
            }
            Step::Room(node, room) => self.world.set_room(Node(node), room),
            Step::Pin(page) => self.world.pin(page),
            Step::Unmap(page) => self.world.unmap(page),
            Step::Scalar(space, scalar) => {
                if let Scanner::Kmmscand(daemon) = &mut self.scanner {
                    daemon.slot(SpaceId(space)).into_iter().for_each(|slot| slot.set_scalar(scalar));
                }
            }
            Step::Add(..) | Step::Unscanned(..) | Step::Busy(..) => {}
        }
        let (wanted, waiting) = (&self.wanted, &self.waiting);
        assert_eq!((wanted.len(), wanted.is_empty()), (waiting.len(), waiting.is_empty()));
    }
}

/// Does all steps.
fn live(scanner: Scanner, steps: &[Step]) {
    let mut life = Life::new(scanner);
    for step in steps {
        life.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn kmmscand_wants_what_is_slow_and_in_use(revision in prop::sample::select(&REVISIONS[..]), steps in steps()) {
        live(Scanner::Kmmscand(Kmmscand::new(revision)), &steps);
    }

    #[test]
    fn the_seeker_wants_what_is_slow_and_in_use(permille in 1..100u64, seed: u64, steps in steps()) {
        let budget = Budget { period: Nanos(100 * MS), permille };
        live(Scanner::Seeker(Seeker::new(budget, seed)), &steps);
    }
}
