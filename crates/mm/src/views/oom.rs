//! What is said when a request finds no memory: a report in the shape of the kernel's (`Mem-Info`), kept for whoever
//! wants to read it. Nothing is killed for the request; it ends in an error, and its task decides.
//!
//! What we do not keep is left out of the lines: pages locked by programs, bounce buffers, CMA.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::{ViewsDoor, ViewsGround};
use crate::ground::{
    AtomicU64, LockClass, Locked, Machine, MigrateType, Nanos, Node, Order, PAGE_ALLOC_COSTLY_ORDER, Relaxed,
    ZoneKind,
};
use crate::lru::LruList;
use crate::pages::{Request, Search, Zone};
use crate::views::procfs::columns;

/// Reports that are kept.
const KEPT: usize = 4;

/// At most so many reports in so long, as the kernel's: a machine that is out of memory should not spend its time on
/// saying so.
const BURST: u32 = 10;
const INTERVAL: Nanos = Nanos(5_000_000_000);

/// The last reports.
#[derive(Debug)]
pub struct OomReports<M: Machine> {
    count: AtomicU64,
    kept: Locked<M, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    reports: VecDeque<String>,
    /// When the present interval began, and reports in it.
    since: Nanos,
    lately: u32,
}

impl Kept {
    /// Whether one more may be written now.
    fn may_report(&mut self, now: Nanos) -> bool {
        if now.0 - self.since.0 > INTERVAL.0 {
            (self.since, self.lately) = (now, 0);
        }
        self.lately += 1;
        self.lately <= BURST
    }
}

impl<M: Machine> OomReports<M> {
    pub(crate) fn new(machine: &M) -> Self {
        Self { count: AtomicU64::new(0), kept: Locked::new(machine, LockClass::Other, 5, Kept::default()) }
    }

    /// Requests that ended in out of memory.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// The last four reports of requests that found no memory, oldest first.
    pub fn oom_reports(self) -> Vec<String> {
        self.own().kept.lock(self.machine()).reports.iter().cloned().collect()
    }

    /// `search` found nothing, and nothing more can be done.
    #[cold]
    pub(crate) fn report_out_of_memory(self, search: Search<'_>) {
        let reports = &self.own();
        reports.count.fetch_add(1, Relaxed);
        if !reports.kept.lock(self.machine()).may_report(self.machine().now()) {
            return;
        }
        let mut text = self.opening(search);
        text.push_str(&self.mem_info());
        let mut kept = reports.kept.lock(self.machine());
        if kept.reports.len() == KEPT {
            kept.reports.pop_front();
        }
        kept.reports.push_back(text);
    }

    /// The kernel kills for no costly order; it only says that there is none.
    fn opening(self, search: Search<'_>) -> String {
        let (request, task) = (search.request, self.machine().task().0);
        let (gfp, order, node) = (gfp_words(request), request.order.get(), search.node.0);
        let mut text = String::new();
        if order > PAGE_ALLOC_COSTLY_ORDER {
            put(
                &mut text,
                format_args!(
                    "task {task}: page allocation failure: order:{order}, mode:{gfp}, node={node}\n"
                ),
            );
        } else {
            put(
                &mut text,
                format_args!("task {task} invoked oom-killer: gfp_mask={gfp}, order={order}, node={node}\n"),
            );
        }
        text
    }

    /// How much memory is where and what of it could be freed, in the kernel's words (`show_mem`).
    pub fn mem_info(self) -> String {
        let mut text = String::from("Mem-Info:\n");
        self.put_sums(&mut text);
        for node in 0..self.topology().nodes.len() {
            self.put_node(&mut text, Node(node as u16));
        }
        for zone in self.zones() {
            self.put_zone_marks(&mut text, zone);
        }
        for zone in self.zones() {
            self.put_blocks(&mut text, zone);
        }
        let (used, size) = self.spaces().swap_pages();
        let ram: u64 = self.zones().iter().map(|zone| u64::from(zone.present())).sum();
        let managed: u64 = self.zones().iter().map(|zone| u64::from(zone.managed())).sum();
        put(&mut text, format_args!("{} total pagecache pages\n", self.files().file_pages()));
        put(
            &mut text,
            format_args!(
                "Free swap  = {}kB\nTotal swap = {}kB\n",
                kib((size - used).into()),
                kib(size.into())
            ),
        );
        put(&mut text, format_args!("{ram} pages RAM\n{} pages reserved\n", ram - managed));
        text
    }

    fn put_sums(self, text: &mut String) {
        let sum =
            |list| self.zones().iter().map(|zone| u64::from(self.lru().zone_size(zone, list))).sum::<u64>();
        let (dirty, memory) = (self.files().dirty_pages(), self.memory_use());
        put(
            text,
            format_args!(
                "active_anon:{} inactive_anon:{}\n active_file:{} inactive_file:{}\n dirty:{} writeback:{}\n",
                sum(LruList::ActiveAnon),
                sum(LruList::InactiveAnon),
                sum(LruList::ActiveFile),
                sum(LruList::InactiveFile),
                dirty.dirty,
                dirty.writeback,
            ),
        );
        put(
            text,
            format_args!(
                " slab:{} free:{} free_pcp:{}\n",
                self.slabs().slab_pages(),
                memory.free,
                memory.pcp
            ),
        );
    }

    fn put_node(self, text: &mut String, node: Node) {
        let pages = |list| kib(self.lru().node_list_size(node, list).into());
        put(
            text,
            format_args!(
                "Node {} active_anon:{}kB inactive_anon:{}kB active_file:{}kB inactive_file:{}kB \
                 all_unreclaimable? {}\n",
                node.0,
                pages(LruList::ActiveAnon),
                pages(LruList::InactiveAnon),
                pages(LruList::ActiveFile),
                pages(LruList::InactiveFile),
                if self.reclaim().kswapd_gave_up(node) { "yes" } else { "no" },
            ),
        );
    }

    fn put_zone_marks(self, text: &mut String, zone: &Zone<M>) {
        let (marks, boost) = (zone.watermarks(), zone.boost());
        let pcp: u64 =
            zone.pagesets().iter().map(|set| u64::from(set.pcp().lock(self.machine()).count())).sum();
        put(text, format_args!("Node {} {}", zone.node().0, zone.kind().name()));
        let rows = [
            (" free", zone.free_pages_exact()),
            (" boost", boost.into()),
            (" min", (marks.min + boost).into()),
            (" low", (marks.low + boost).into()),
            (" high", (marks.high + boost).into()),
            (" reserved_highatomic", zone.stat().reserved_highatomic().into()),
        ];
        let lists = [
            (" active_anon", LruList::ActiveAnon),
            (" inactive_anon", LruList::InactiveAnon),
            (" active_file", LruList::ActiveFile),
            (" inactive_file", LruList::InactiveFile),
        ];
        let lists = lists.map(|(name, list)| (name, u64::from(self.lru().zone_size(zone, list))));
        let sizes =
            [(" present", zone.present().into()), (" managed", zone.managed().into()), (" free_pcp", pcp)];
        for (name, pages) in rows.into_iter().chain(lists).chain(sizes) {
            put(text, format_args!("{name}:{}kB", kib(pages)));
        }
        text.push_str("\nlowmem_reserve[]:");
        for pages in columns(self.topology().word, zone.protection()) {
            put(text, format_args!(" {pages}"));
        }
        text.push('\n');
    }

    /// Free blocks by order, and the types of those that there are.
    fn put_blocks(self, text: &mut String, zone: &Zone<M>) {
        put(text, format_args!("Node {} {}:", zone.node().0, zone.kind().name()));
        let mut sum = 0;
        for (order, by_type) in Order::ZERO.to(Order::MAX).zip(self.blocks_of(zone)) {
            let blocks: u32 = by_type.iter().sum();
            put(text, format_args!(" {blocks}*{}kB", kib(order.pages().into())));
            if blocks > 0 {
                let there = MigrateType::ALL.into_iter().filter(|kind| by_type[kind.index()] > 0);
                put(text, format_args!(" ({})", there.map(letter).collect::<String>()));
            }
            sum += u64::from(blocks) << order.get();
        }
        put(text, format_args!(" = {}kB\n", kib(sum)));
    }
}

const fn kib(pages: u64) -> u64 {
    pages * 4
}

/// The kernel's letter for a type.
const fn letter(migratetype: MigrateType) -> char {
    match migratetype {
        MigrateType::Unmovable => 'U',
        MigrateType::Movable => 'M',
        MigrateType::Reclaimable => 'E',
        MigrateType::HighAtomic => 'H',
        MigrateType::Cma => 'C',
        MigrateType::Isolate => 'I',
    }
}

/// A request in the kernel's words. The zone stands for what a driver would have said.
fn gfp_words(request: &Request) -> String {
    let mut words = String::from(match (request.highest, request.migratetype) {
        (ZoneKind::Movable, MigrateType::Movable) => "GFP_HIGHUSER_MOVABLE",
        (ZoneKind::Movable, _) => "GFP_HIGHUSER",
        (_, MigrateType::Movable) => "GFP_USER|__GFP_MOVABLE",
        (_, MigrateType::Reclaimable) => "GFP_KERNEL|__GFP_RECLAIMABLE",
        _ => "GFP_KERNEL",
    });
    match request.highest {
        ZoneKind::Dma => words.push_str("|__GFP_DMA"),
        ZoneKind::Dma32 => words.push_str("|__GFP_DMA32"),
        _ => {}
    }
    if request.zero {
        words.push_str("|__GFP_ZERO");
    }
    if request.this_node {
        words.push_str("|__GFP_THISNODE");
    }
    words
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes all that is written to it");
}
