//! Accesses, one at a time, so that processes can take turns between them.

use std::sync::Arc;

use mm::Bare;
use mm::vm::{File, Touch, Vpn};

use super::clock::Stretch;
use super::play::{At, Player, Stop};
use super::process::Process;
use crate::script::draws::Popularity;
use crate::script::names::{Named, PAGE};
use crate::script::program::{Accesses, Order, Zipf};

/// Bytes of a block in which a new file is written, and after how many it is dropped from memory.
const BLOCK: u64 = 65536;
const DROPPED_EACH: u64 = 8 << 20;
/// Pages that are popular at most.
const MOST_POPULAR: u64 = 131_072;

/// What a process is at.
pub(super) struct Doing {
    at: At,
    what: Series,
    done: u64,
    all: u64,
}

enum Series {
    Strides {
        named: Named<Bare>,
        from: u64,
        step: u64,
        count: u64,
        order: Order,
        touch: Touch,
    },
    Zipf {
        named: Named<Bare>,
        from: u64,
        popularity: Popularity,
        seed: u64,
        touch: Touch,
    },
    /// A file is made.
    Make {
        file: Arc<File<Bare>>,
        bytes: u64,
    },
}

impl Player {
    /// Begins to touch.
    pub(super) fn begin_accesses(&self, process: &mut Process, what: &Accesses, at: At) -> Result<(), Stop> {
        if matches!(what.order, Order::Drawn(_)) {
            self.draws(process);
        }
        let named = Self::named(process, &what.name, at)?;
        let step = if matches!(named, Named::Region(_)) { what.stride } else { what.block };
        let (from, to) = Self::part(process, &what.name, what.part, at)?;
        if step == 0 {
            return Err(Stop::Signal("it divided by 0"));
        }
        let count = (to - from).div_ceil(step);
        let (order, touch) = (what.order, what.touch);
        if matches!(named, Named::File { .. }) && touch == Touch::Read && step > BLOCK && count > 0 {
            return Err(Stop::Signal("it read more than its buffer holds"));
        }
        let all = count.saturating_mul(what.times);
        let what = Series::Strides { named, from, step, count, order, touch };
        process.doing = Some(Doing { at, what, done: 0, all });
        Ok(())
    }

    pub(super) fn begin_zipf(&self, process: &mut Process, what: &Zipf, at: At) -> Result<(), Stop> {
        let named = Self::named(process, &what.name, at)?;
        let (from, to) = Self::part(process, &what.name, what.part, at)?;
        self.draws(process);
        let pages = (to - from) / PAGE;
        if pages > MOST_POPULAR {
            return Err(at.broken("too many pages"));
        }
        self.step(at, pages / 16)?;
        let popularity = Popularity::new(pages as u32, what.skew);
        let Some(popularity) = popularity.filter(|_| pages > 0 || what.count == 0) else {
            return Err(Stop::Signal("it divided by 0"));
        };
        let what_next = Series::Zipf { named, from, popularity, seed: what.seed, touch: what.touch };
        process.doing = Some(Doing { at, what: what_next, done: 0, all: what.count });
        Ok(())
    }

    /// Begins to write a file, which is in memory no more when that is done.
    pub(super) fn begin_making(process: &mut Process, (file, bytes): (Arc<File<Bare>>, u64), at: At) {
        let what = Series::Make { file, bytes };
        process.doing = Some(Doing { at, what, done: 0, all: bytes.div_ceil(BLOCK) });
    }

    /// The next access of what `process` does; says whether there is more of it.
    pub(super) fn go_on(&mut self, process: &mut Process, doing: &mut Doing) -> Result<bool, Stop> {
        let Doing { at, ref what, done, all } = *doing;
        if done < all {
            self.access_next(process, what, done, at)?;
            self.went_on(process, at.stretch, (done, all));
        }
        doing.done += 1;
        let goes_on = doing.done < all;
        match what {
            Series::Make { file, bytes } if !goes_on => {
                self.write_back();
                self.forget(file, 0, bytes.div_ceil(PAGE) as u32);
                self.owe_metadata(*bytes);
            }
            _ => {}
        }
        Ok(goes_on)
    }

    pub(super) fn at_of(doing: &Doing) -> At {
        doing.at
    }

    fn access_next(&mut self, process: &mut Process, what: &Series, done: u64, at: At) -> Result<(), Stop> {
        let too_many_seeds = || at.broken("too many seeds");
        match what {
            Series::Strides { named, from, step, count, order, touch } => {
                let turn = process.names.turn(done % count, *count, *order).ok_or_else(too_many_seeds)?;
                self.access(process, named, (from + turn * step, *step), *touch, at)
            }
            Series::Zipf { named, from, popularity, seed, touch } => {
                let page = popularity.page(process.names.state(*seed).ok_or_else(too_many_seeds)?);
                self.access(process, named, (from + u64::from(page) * PAGE, PAGE), *touch, at)
            }
            Series::Make { file, bytes } => {
                let named = Named::File { file: Arc::clone(file), bytes: *bytes };
                self.access(process, &named, (done * BLOCK, BLOCK), Touch::Write, at)?;
                if done * BLOCK % DROPPED_EACH == 0 {
                    self.write_back();
                    self.forget(file, 0, bytes.div_ceil(PAGE) as u32);
                }
                Ok(())
            }
        }
    }

    /// One access: to a region, or by a call of so many bytes.
    fn access(
        &mut self,
        process: &mut Process,
        named: &Named<Bare>,
        (offset, bytes): (u64, u64),
        touch: Touch,
        at: At,
    ) -> Result<(), Stop> {
        let bytes = match named {
            Named::Region(region) if touch == Touch::Write => region.stores,
            Named::Region(_) => 8,
            Named::File { bytes: len, .. } => bytes.min(len - offset),
        };
        if bytes == 0 {
            return self.step(at, 1);
        }
        let (first, last) = ((offset / PAGE) as u32, ((offset + bytes - 1) / PAGE) as u32);
        self.step(at, u64::from(last - first) + 1)?;
        match named {
            Named::Region(region) => (first..=last).try_for_each(|page| {
                let vpn = Vpn(region.start.0.saturating_add(page));
                self.until_done(process, at, |player, process| Ok(player.touch_at(process, vpn, touch)?))
            }),
            Named::File { file, .. } => self.until_done(process, at, |player, process| {
                let (files, from) = (player.machine.mm.files(), player.file_placement(process));
                if touch == Touch::Read {
                    files.read_pages(file, first..last + 1, from)?;
                } else {
                    files.write_pages(file, first..last + 1, || from)?;
                }
                Ok(())
            }),
        }
    }

    /// So many of `all` accesses of a line are done.
    pub(super) fn went_on(&self, process: &mut Process, stretch: Stretch, (done, all): (u64, u64)) {
        self.pass_to(process, stretch.after(done, all));
        self.ran(process);
        self.run_daemons();
    }
}
