//! Which block of mm's stands for which of the kernel's, and mm's memory as full as the kernel's was.

use std::collections::BTreeMap;

use mm::{Bare, Cpu, MigrateType, Mm, Order, Pfn, ZoneId};

use super::super::counts::{Telling, initial_lists};
use super::super::hidden::Hidden;
use super::super::lists::PagesetId;
use crate::conform::read::sections::FormatError;
use crate::conform::read::trace_csv::PageTrace;

/// Blocks in use.
pub(super) struct Blocks<'a> {
    trace: &'a PageTrace,
    /// The block of each of the trace's pages, while it is in use.
    of_page: Vec<Option<(Pfn, Order)>>,
    /// Blocks above order 0 by their first frame in the trace: they may be freed piecemeal.
    large: BTreeMap<Pfn, Order>,
    /// Blocks that were in use before the trace began, by zone and order.
    before: Vec<[Vec<Pfn>; 11]>,
}

impl<'a> Blocks<'a> {
    /// Brings mm's zones to where the kernel's were: pages on lists, blocks in use, and the rest of the memory in use, so
    /// that as many pages are free.
    pub(super) fn begin(telling: Telling<'a>, hidden: &Hidden, mm: &Mm<Bare>) -> Result<Self, FormatError> {
        let story = telling.story;
        let mut blocks = Self {
            trace: telling.trace,
            of_page: vec![None; telling.trace.pfns.len()],
            large: BTreeMap::new(),
            before: (0..story.shape.zones).map(|_| std::array::from_fn(|_| vec![])).collect(),
        };
        for index in 0..story.shape.pagesets() {
            let pageset = PagesetId(index as u32);
            let at = (ZoneId(story.shape.zone(pageset) as u16), Cpu(story.shape.cpu(pageset)));
            for (list, count) in
                initial_lists(story, pageset, telling.sizes[index].count, hidden.more(pageset))
            {
                mm.pages().steps().place_on_pageset(at, list.order(), list.migratetype(), count);
            }
        }
        for (zone, counts) in story.in_use.iter().enumerate() {
            blocks.fill(mm, zone, counts, telling.beside.before[zone].free)?;
        }
        Ok(blocks)
    }

    /// Takes the blocks in use, and everything but `free` pages.
    fn fill(&mut self, mm: &Mm<Bare>, zone: usize, counts: &[u32; 11], free: u64) -> Result<(), FormatError> {
        let id = ZoneId(zone as u16);
        let short = || FormatError::new(0, "more pages were in use than zoneinfo-before leaves room for");
        for order in Order::ZERO.to(Order::MAX).rev() {
            for _ in 0..counts[order.index()] {
                let pfn =
                    mm.pages().steps().rmqueue_buddy(id, order, MigrateType::Movable).ok_or_else(short)?;
                self.before[zone][order.index()].push(pfn);
            }
        }
        for order in Order::ZERO.to(Order::MAX).rev() {
            while mm.zones()[zone].free_pages_exact() >= free + u64::from(order.pages()) {
                if mm.pages().steps().rmqueue_buddy(id, order, MigrateType::Movable).is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// `block` now stands for the trace's `page`, an index; [`super::super::life::NONE`] for one that it does not name.
    pub(super) fn keep(&mut self, page: u32, block: (Pfn, Order)) {
        if let Some(slot) = self.of_page.get_mut(page as usize) {
            *slot = Some(block);
            if block.1 > Order::ZERO {
                self.large.insert(self.trace.pfns[page as usize], block.1);
            }
        }
    }

    /// The block that stands for a page that is freed as one of `order`, split off if it was part of a larger one, or one
    /// that was in use before.
    pub(super) fn release(&mut self, mm: &Mm<Bare>, page: u32, zone: usize, order: Order) -> Option<Pfn> {
        let pfn = self.trace.pfns[page as usize];
        if self.of_page[page as usize].is_none_or(|(_, whole)| whole != order) && !self.large.is_empty() {
            self.split(mm, pfn, order);
        }
        match self.of_page[page as usize].take() {
            Some((block, whole)) if whole == order => {
                if order > Order::ZERO {
                    self.large.remove(&pfn);
                }
                Some(block)
            }
            _ => self.before[zone][order.index()].pop(),
        }
    }

    /// Makes single pages of the larger block that `pfn` is in.
    fn split(&mut self, mm: &Mm<Bare>, pfn: Pfn, order: Order) {
        let Some((&head, &whole)) = self.large.range(..=pfn).next_back() else { return };
        if order != Order::ZERO || pfn.0 >= head.0 + whole.pages() {
            return;
        }
        let Ok(page) = self.trace.pfns.binary_search(&head) else { return };
        let Some((block, _)) = self.of_page[page].take() else { return };
        self.large.remove(&head);
        if mm.pages().split(block, whole).is_err() {
            return;
        }
        for part in 0..whole.pages() {
            if let Ok(page) = self.trace.pfns.binary_search(&head.add(part)) {
                self.of_page[page] = Some((block.add(part), Order::ZERO));
            }
        }
    }
}
