//! Random lives of address spaces against the simplest model of them: which pages there are, what may be done to them, and
//! what each holds. Regions come, move, are protected, given back and forked, with and without huge pages; after every
//! step all references are counted, and a page that holds another's contents, or is gone, is seen.

mod remembering;

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_mm::ids::PAGEBLOCK_PAGES;
use freehold_mm::vm::{
    AddressSpace, FaultError, File, FileKind, HugePages, MapError, MapSpec, Protection, Touch, Vpn,
};
use freehold_mm::{Knob, Knobs, MigrateError, Mm, Node, NodeSize, Policy, Topology};
use proptest::prelude::*;
use remembering::Remembering;

/// The pages that regions may be at.
const FIRST: u32 = 2 * PAGEBLOCK_PAGES;
const PAGES: u32 = 6 * PAGEBLOCK_PAGES;
const SPACES: usize = 3;

/// What a virtual page is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Held {
    /// The process's own, and what it holds.
    Own(u32),
    /// A page of the file of shared memory.
    Shared(u32),
}

#[derive(Clone, Copy, Debug)]
struct Page {
    held: Held,
    protection: Protection,
}

/// What a process sees.
#[derive(Clone, Debug)]
struct Model(Vec<Option<Page>>);

impl Model {
    fn page(&self, vpn: Vpn) -> Option<Page> {
        self.0[(vpn.0 - FIRST) as usize]
    }

    fn set(&mut self, vpn: Vpn, page: Option<Page>) {
        self.0[(vpn.0 - FIRST) as usize] = page;
    }

    fn clear(&mut self, start: Vpn, pages: u32) {
        (0..pages).for_each(|page| self.set(start.add(page), None));
    }

    /// Pages that are mapped from `start` on, `most` at most.
    fn mapped(&self, start: Vpn, most: u32) -> u32 {
        (0..most).take_while(|&page| self.page(start.add(page)).is_some()).count() as u32
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Own,
    Shared,
}

/// A step: on which space, from which page on, how many, and what.
#[derive(Clone, Copy, Debug)]
struct Step {
    space: usize,
    at: u32,
    pages: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Map(Kind, Protection),
    Unmap,
    /// To where, and how many they are to be.
    Move(u32, u32),
    Protect(Protection),
    Write,
    Read,
    Discard,
    /// To another frame, page by page: the way back from a page to its entries is gone.
    Migrate,
    Huge(HugePages),
    /// Of the space with this number.
    Fork(usize),
    Exit,
}

struct Life {
    machine: Remembering,
    mm: Mm<Remembering>,
    file: Arc<File<Remembering>>,
    shared: BTreeMap<u32, u32>,
    spaces: Vec<Option<(Arc<AddressSpace<Remembering>>, Model)>>,
    next: u32,
}

impl Life {
    /// `sizes` is who gets pages of 16, 64 and 1,024 KiB, where kernels have them.
    fn new(huge: u64, sizes: [u64; 3], policy: &str) -> Self {
        let nodes = [NodeSize { bytes: 128 << 20, cpus: 1 }];
        let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
        let knobs = Knobs::default();
        knobs.set(Knob::TransparentHugepage, huge).unwrap();
        let of_sizes = [Knob::Hugepages16kB, Knob::Hugepages64kB, Knob::Hugepages1024kB];
        for (knob, who) in of_sizes.into_iter().zip(sizes).filter(|_| policy != "linux-5.4") {
            knobs.set(knob, who).unwrap();
        }
        knobs.set(Knob::OvercommitMemory, 1).unwrap();
        let machine = Remembering::default();
        let mm = Mm::new(machine.clone(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
        let file = mm.files().new_file(FileKind::Memory);
        Self { machine, mm, file, shared: BTreeMap::new(), spaces: vec![None; SPACES], next: 0 }
    }

    /// The space numbered so, which begins empty if it is not there.
    fn space(&mut self, number: usize) -> Arc<AddressSpace<Remembering>> {
        let mm = &self.mm;
        let fresh = || (mm.spaces().new_space(), Model(vec![None; PAGES as usize]));
        Arc::clone(&self.spaces[number].get_or_insert_with(fresh).0)
    }

    fn model(&mut self, number: usize) -> &mut Model {
        &mut self.spaces[number].as_mut().expect("it was asked for before").1
    }

    fn take(&mut self, step: Step) {
        let space = self.space(step.space);
        // Many steps at the edges of tables, where most can go wrong.
        let at = FIRST + step.at.min(PAGES - 1);
        let pages = step.pages.min(FIRST + PAGES - at);
        let at = Vpn(at);
        match step.what {
            What::Map(kind, protection) => self.map(step.space, (at, pages), kind, protection),
            What::Unmap => {
                self.mm.spaces().munmap(&space, at, pages);
                self.model(step.space).clear(at, pages);
            }
            What::Move(to, new_pages) => {
                let to = FIRST + to.min(PAGES - 1);
                let new_pages = new_pages.min(FIRST + PAGES - to);
                self.remap(step.space, (at, pages), (Vpn(to), new_pages));
            }
            What::Protect(protection) => self.protect(step.space, (at, pages), protection),
            What::Write | What::Read => {
                for page in (0..pages).step_by(step.pages as usize / 9 + 1) {
                    self.touch(step.space, at.add(page), step.what);
                }
            }
            What::Discard => {
                self.mm.spaces().discard(&space, at, pages);
                let model = self.model(step.space);
                for vpn in (0..pages).map(|page| at.add(page)) {
                    if let Some(Page { held: Held::Own(_), protection }) = model.page(vpn) {
                        model.set(vpn, Some(Page { held: Held::Own(0), protection }));
                    }
                }
            }
            What::Migrate => {
                self.mm.lru().lru_drain_all();
                for page in (0..pages).step_by(step.pages as usize / 9 + 1) {
                    // One that is not there, or was given away meanwhile, stays.
                    let moved = self.mm.rmap().move_page(&space, at.add(page), Node(0));
                    assert!(
                        matches!(moved, Ok(()) | Err(MigrateError::Absent | MigrateError::Busy)),
                        "{moved:?}"
                    );
                }
            }
            What::Huge(huge) => self.mm.spaces().advise(&space, at, pages, huge),
            What::Fork(parent) => self.fork(step.space, parent),
            What::Exit => {
                self.mm.spaces().exit(&space);
                self.spaces[step.space] = None;
            }
        }
    }

    fn map(&mut self, number: usize, (at, pages): (Vpn, u32), kind: Kind, protection: Protection) {
        let space = self.space(number);
        let spec = match kind {
            Kind::Own => MapSpec::anonymous(pages),
            Kind::Shared => MapSpec::shared(&self.file, pages).from_page(at.0 - FIRST),
        };
        self.mm.spaces().mmap_at(&space, at, spec.protected(protection)).unwrap();
        for vpn in (0..pages).map(|page| at.add(page)) {
            let held = match kind {
                Kind::Own => Held::Own(0),
                Kind::Shared => Held::Shared(vpn.0 - FIRST),
            };
            self.model(number).set(vpn, Some(Page { held, protection }));
        }
    }

    fn remap(&mut self, number: usize, (from, old): (Vpn, u32), (to, new): (Vpn, u32)) {
        let space = self.space(number);
        let model = self.model(number);
        let apart = to >= from.add(old) || from >= to.add(new);
        let is_free = |model: &Model| (old..new).all(|page| model.page(from.add(page)).is_none());
        let expected = match () {
            () if model.mapped(from, old) < old => Err(MapError::NotMapped),
            () if to != from && !apart => Err(MapError::Overlap),
            () if to == from && !is_free(model) => Err(MapError::NoRoom),
            () => Ok(()),
        };
        if expected.is_ok() {
            let kept: Vec<Option<Page>> = (0..old.min(new)).map(|page| model.page(from.add(page))).collect();
            let last = model.page(from.add(old - 1)).unwrap();
            model.clear(from, old);
            model.clear(to, new);
            for (page, held) in kept.into_iter().enumerate() {
                model.set(to.add(page as u32), held);
            }
            for page in old..new {
                let held = match last.held {
                    Held::Own(_) => Held::Own(0),
                    Held::Shared(index) => Held::Shared(index + 1 + page - old),
                };
                model.set(to.add(page), Some(Page { held, ..last }));
            }
        }
        assert_eq!(self.mm.spaces().mremap(&space, from, old, to, new), expected);
    }

    fn protect(&mut self, number: usize, (at, pages): (Vpn, u32), protection: Protection) {
        let space = self.space(number);
        let model = self.model(number);
        let mapped = model.mapped(at, pages);
        for vpn in (0..mapped).map(|page| at.add(page)) {
            let page = model.page(vpn).unwrap();
            model.set(vpn, Some(Page { protection, ..page }));
        }
        let expected = if mapped < pages { Err(MapError::NotMapped) } else { Ok(()) };
        assert_eq!(self.mm.spaces().protect(&space, at, pages, protection), expected);
    }

    fn touch(&mut self, number: usize, vpn: Vpn, what: What) {
        let space = self.space(number);
        let touch = if matches!(what, What::Write) { Touch::Write } else { Touch::Read };
        let touched = self.mm.spaces().touch_page(&space, vpn, touch);
        let page = self.model(number).page(vpn);
        let allowed = match page.map(|page| page.protection) {
            None => Err(FaultError::NoRegion(vpn)),
            Some(Protection::None) => Err(FaultError::Forbidden(vpn)),
            Some(Protection::Read) if touch == Touch::Write => Err(FaultError::Forbidden(vpn)),
            Some(_) => Ok(()),
        };
        assert_eq!(touched.map(|_| ()), allowed, "{vpn}");
        let (Ok((pfn, _)), Some(page)) = (touched, page) else { return };
        let holds = match page.held {
            Held::Own(number) => number,
            Held::Shared(index) => self.shared.get(&index).copied().unwrap_or(0),
        };
        assert_eq!(self.machine.read(pfn), holds, "{vpn}");
        if touch == Touch::Write {
            self.next += 1;
            self.machine.write(pfn, self.next);
            let next = self.next;
            match page.held {
                Held::Own(_) => self.model(number).set(vpn, Some(Page { held: Held::Own(next), ..page })),
                Held::Shared(index) => drop(self.shared.insert(index, next)),
            }
        }
    }

    fn fork(&mut self, number: usize, parent: usize) {
        if number == parent {
            return;
        }
        let (space, parent_space) = (self.space(number), self.space(parent));
        self.mm.spaces().exit(&space);
        let child = self.mm.spaces().fork(&parent_space).unwrap();
        let model = self.model(parent).clone();
        self.spaces[number] = Some((child, model));
    }

    /// Every page that may be read holds what it should, and every reference is counted.
    fn check(&mut self) {
        self.mm.spaces().check_vm().unwrap();
        self.mm.views().check().unwrap();
    }

    fn check_contents(&mut self) {
        for number in 0..SPACES {
            for vpn in (FIRST..FIRST + PAGES).map(Vpn) {
                let page = self.spaces[number].as_ref().and_then(|(_, model)| model.page(vpn));
                if page.is_some_and(|page| page.held != Held::Own(0)) {
                    self.touch(number, vpn, What::Read);
                }
            }
        }
    }

    fn end(mut self) {
        self.check_contents();
        self.check();
        for (space, _) in self.spaces.drain(..).flatten() {
            self.mm.spaces().exit(&space);
        }
        self.mm.files().drop_file(&self.file);
        self.mm.lru().lru_drain_all();
        self.mm.spaces().free_huge_zero();
        assert_eq!(self.mm.views().memory_use().held(), 0);
        assert_eq!(self.mm.spaces().committed_pages(), 0);
        self.mm.views().check().unwrap();
    }
}

/// A page of the area, often at the edge of a table.
fn page() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..PAGES,
        (0..PAGES / PAGEBLOCK_PAGES).prop_map(|table| table * PAGEBLOCK_PAGES),
        (0..PAGES / PAGEBLOCK_PAGES).prop_map(|table| table * PAGEBLOCK_PAGES + 7),
    ]
}

/// How many pages, often whole tables.
fn size() -> impl Strategy<Value = u32> {
    prop_oneof![1..40_u32, 1..2 * PAGEBLOCK_PAGES, Just(PAGEBLOCK_PAGES), Just(2 * PAGEBLOCK_PAGES)]
}

fn protection() -> impl Strategy<Value = Protection> {
    prop_oneof![Just(Protection::ReadWrite), Just(Protection::Read), Just(Protection::None)]
}

fn what() -> impl Strategy<Value = What> {
    let kind = prop_oneof![3 => Just(Kind::Own), 1 => Just(Kind::Shared)];
    let huge = prop_oneof![Just(HugePages::Never), Just(HugePages::Advised)];
    prop_oneof![
        4 => (kind, protection()).prop_map(|(kind, protection)| What::Map(kind, protection)),
        1 => Just(What::Unmap),
        3 => (page(), size()).prop_map(|(to, pages)| What::Move(to, pages)),
        2 => protection().prop_map(What::Protect),
        6 => Just(What::Write),
        4 => Just(What::Read),
        1 => Just(What::Discard),
        2 => Just(What::Migrate),
        1 => huge.prop_map(What::Huge),
        2 => (0..SPACES).prop_map(What::Fork),
        1 => Just(What::Exit),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (0..SPACES, page(), size(), what()).prop_map(|(space, at, pages, what)| Step { space, at, pages, what })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_process_sees_what_it_wrote_wherever_that_went(
        steps in prop::collection::vec(step(), 1..50),
        huge in 0..3_u64,
        sizes in [0..4_u64, 0..4_u64, 0..4_u64],
        policy in prop_oneof![Just("linux-6.18"), Just("linux-6.12"), Just("linux-5.4")],
    ) {
        let mut life = Life::new(huge, sizes, policy);
        // Something to begin with.
        life.map(0, (Vpn(FIRST + 7), 3 * PAGEBLOCK_PAGES), Kind::Own, Protection::ReadWrite);
        for step in steps {
            life.take(step);
            life.check();
        }
        life.end();
    }
}
