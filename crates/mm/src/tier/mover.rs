//! Moves what is wanted: the migrating half of every controller.

use super::feedback::Feedback;
use super::ground::{Ground, Stayed};
use super::list::WantedPage;

/// When other CPUs learn that pages have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// After each page, as kmmscand's promotion of single pages has it.
    EachPage,
    /// After each batch, as `migrate_pages` does since 6.3.
    EachBatch,
}

/// What became of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pass {
    /// Pages moved.
    pub moved: u64,
    /// Pages of the list that stayed.
    pub failed: u64,
    /// Pages of the list that stayed because the node had no room.
    pub no_room: u64,
}

/// Moves pages, and remembers how that goes.
#[derive(Debug)]
pub struct Mover {
    flush: Flush,
    feedback: Feedback,
}

impl Mover {
    /// One that has moved nothing yet.
    pub fn new(flush: Flush) -> Self {
        Self { flush, feedback: Feedback::default() }
    }

    /// How many fail of late.
    pub fn feedback(&self) -> Feedback {
        self.feedback
    }

    /// Moves `pages`, all of one address space.
    pub fn work(&mut self, ground: &impl Ground, pages: &[WantedPage]) -> Pass {
        let mut pass = Pass::default();
        for page in pages {
            match ground.promote(page.space, page.vpn, page.node) {
                Ok(moved) => {
                    pass.moved += u64::from(moved);
                    self.feedback.moved();
                    if self.flush == Flush::EachPage {
                        ground.flush(page.space);
                    }
                }
                // It went elsewhere by itself.
                Err(Stayed::Gone) => {}
                Err(why) => {
                    pass.failed += 1;
                    pass.no_room += u64::from(why == Stayed::NoRoom);
                    self.feedback.failed();
                }
            }
        }
        if let (Flush::EachBatch, Some(page), true) = (self.flush, pages.first(), pass.moved > 0) {
            ground.flush(page.space);
        }
        pass
    }
}
