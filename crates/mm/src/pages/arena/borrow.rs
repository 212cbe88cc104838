//! Whole free ranges that move from one arena to another.
//!
//! The lender's lock is let go before the borrower's is taken. Between the two, the ranges are on no list and nobody but
//! the CPU that moves them knows of them: a request that finds no block just then may fail although there is one, as it
//! may while another CPU holds blocks on its way to a pageset.

use super::{Arenas, Types};
use crate::ground::{Access, Machine, MigrateType, Order, Pfn, Relaxed};
use crate::pages::buddy::{FreeAreas, Place, ZoneCx};
use crate::pages::stat::SlowEvents;

/// Ranges that move at a time, if the lender has twice as many: 32 MiB.
const AT_A_TIME: usize = 8;

/// Whole free ranges on no list, all of one type.
#[derive(Debug)]
pub(super) struct Loan {
    ranges: [Pfn; AT_A_TIME],
    len: usize,
    migratetype: MigrateType,
}

impl Loan {
    /// Puts the ranges on the borrower's lists.
    pub(super) fn settle<M: Machine>(self, cx: ZoneCx<'_, M>, borrower: &mut FreeAreas) {
        for &range in &self.ranges[..self.len] {
            borrower.add(cx, range, Order::MAX, self.migratetype, Place::Tail);
        }
    }
}

/// From whom an arena may borrow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lenders {
    /// From anybody who has a whole range.
    All,
    /// From those of whose share a good part is still whole.
    Rich,
}

impl<M: Machine> Arenas<M> {
    /// Takes whole ranges of one of the types `wanted`, the first of them if there are such, from the neighbour of
    /// `borrower` that has the most; they are `borrower`'s from here on.
    pub(super) fn borrow(
        &self,
        cx: ZoneCx<'_, M>,
        borrower: u32,
        wanted: &[MigrateType],
        lenders: Lenders,
    ) -> Option<Loan> {
        wanted.iter().find_map(|&migratetype| {
            let lender = self.richest_neighbour(cx.cx.machine, borrower, migratetype)?;
            if lenders == Lenders::Rich && !self.is_rich(lender) {
                return None;
            }
            self.lend(cx, lender, borrower, migratetype)
        })
    }

    /// Whether a quarter of what `arena` began with is whole ranges.
    pub(super) fn is_rich(&self, arena: u32) -> bool {
        self.counts(arena).whole.load(Relaxed) * 4 >= self.division.share().max(1)
    }

    fn richest_neighbour(&self, machine: &M, borrower: u32, migratetype: MigrateType) -> Option<u32> {
        let whole = |arena: u32| {
            self.touch_counts(machine, arena, Access::Read);
            self.counts(arena).whole.load(Relaxed)
        };
        let has_type = |&(arena, whole): &(u32, u32)| {
            whole > 0 && self.seems_to_have(machine, arena, Order::MAX, Types::only(migratetype))
        };
        let neighbours = self.division.neighbours(borrower).map(|arena| (arena, whole(arena)));
        // Of equals the nearest.
        let richest =
            neighbours.filter(has_type).reduce(|best, next| if next.1 > best.1 { next } else { best });
        richest.map(|(arena, _)| arena)
    }

    fn lend(&self, cx: ZoneCx<'_, M>, lender: u32, borrower: u32, migratetype: MigrateType) -> Option<Loan> {
        let machine = cx.cx.machine;
        let mut free = self.lock(machine, lender);
        let there = free.list(Order::MAX, migratetype).len();
        let most = (there as usize).div_ceil(2).min(AT_A_TIME);
        let mut loan = Loan { ranges: [Pfn(0); AT_A_TIME], len: 0, migratetype };
        while loan.len < most {
            let Some(range) = free.list(Order::MAX, migratetype).last() else { break };
            free.remove(cx, range);
            self.set_owner(machine, range, borrower);
            SlowEvents::bump(&cx.zone.stat.slow.borrowed);
            loan.ranges[loan.len] = range;
            loan.len += 1;
        }
        (loan.len > 0).then_some(loan)
    }
}
