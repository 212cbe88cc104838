//! Pages through the library's front door.

use freehold_host::{Host, HostError};
use mm::{AllocError, Knob, Knobs, Order, Policy, Request, ZoneKind};

const MIB: u64 = 1 << 20;

fn host(bytes: u64) -> Host {
    Host::new(bytes, Policy::default(), Knobs::default()).unwrap()
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

#[test]
fn blocks_are_aligned_writable_and_apart() {
    let host = host(64 * MIB);
    let mut blocks = vec![];
    for (number, order) in (0u8..).zip([0, 3, 9, 0, 1, 10, 4]) {
        let mut pages = host.alloc(Request::USER.of_order(Order::new(order).unwrap())).unwrap();
        assert_eq!(pages.len(), 4096 << order);
        assert_eq!(pages.address().as_ptr().align_offset(4096 << order), 0);
        pages.fill(number);
        blocks.push(pages);
    }
    for (number, pages) in (0u8..).zip(&blocks) {
        assert!(pages.iter().all(|&byte| byte == number));
    }
    drop(blocks);
    host.drain_all();
    assert_eq!(host.memory_use().free, 64 * MIB / 4096);
    host.check().unwrap();
}

#[test]
fn what_is_asked_to_be_zero_is() {
    let host = host(16 * MIB);
    for _ in 0..3 {
        let mut pages = host.alloc(Request { zero: true, ..Request::USER.of_order(order(2)) }).unwrap();
        assert!(pages.iter().all(|&byte| byte == 0));
        pages.fill(0xff);
    }
}

#[test]
fn a_split_block_is_freed_page_by_page() {
    let host = host(16 * MIB);
    let mut pages = host.alloc(Request::USER.of_order(order(3))).unwrap().split();
    assert_eq!(pages.len(), 8);
    pages[7][0] = 1;
    pages.remove(3);
    host.check().unwrap();
    drop(pages);
    host.drain_all();
    assert_eq!(host.check().unwrap().allocated, 0);
}

#[test]
fn memory_that_is_used_up_comes_back() {
    let host = host(32 * MIB);
    for size in [0, 3, 9] {
        let mut blocks = vec![];
        let error = loop {
            match host.alloc(Request::USER.of_order(order(size))) {
                Ok(pages) => blocks.push(pages),
                Err(error) => break error,
            }
        };
        assert_eq!(error, AllocError::OutOfMemory);
        assert!(blocks.len() as u64 * (4096 << size) > 24 * MIB, "{} blocks of order {size}", blocks.len());
        drop(blocks);
        host.drain_all();
        assert_eq!(host.check().unwrap().free, 32 * MIB / 4096);
    }
    assert!(host.counters().get("allocstall_normal") >= 3);
}

#[test]
fn bad_requests_are_refused() {
    for bytes in [0, 4095, 1 << 44, u64::MAX] {
        let error = Host::new(bytes, Policy::default(), Knobs::default()).unwrap_err();
        assert!(matches!(error, HostError::Size(size) if size == bytes), "{error}");
    }
    let host = host(16 * MIB);
    let low = Request { highest: ZoneKind::Dma, ..Request::KERNEL };
    assert_eq!(host.alloc(low).unwrap_err(), AllocError::NoZone);
    let nowhere = Request { node: Some(mm::Node(999)), ..Request::KERNEL };
    assert_eq!(host.alloc(nowhere).unwrap_err(), AllocError::NoZone);
    assert!(host.set_knob(Knob::PcpBatchScaleMax, 7).is_err());
}

#[test]
fn the_smallest_host_has_a_page_or_says_no() {
    for pages in 1..20 {
        let host = host(pages * 4096);
        let held: Vec<_> = std::iter::from_fn(|| host.alloc(Request::USER).ok()).collect();
        assert!(held.len() as u64 <= pages);
        host.check().unwrap();
    }
}

#[test]
fn daemons_stop_and_a_stopped_host_still_serves() {
    let host = host(16 * MIB);
    host.stop_daemons();
    host.stop_daemons();
    let pages = host.alloc(Request::USER).unwrap();
    host.tick();
    drop(pages);
    host.check().unwrap();
}

#[test]
fn pages_are_freed_by_other_threads() {
    let host = host(64 * MIB);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let pages: Vec<_> = (0..500).map(|_| host.alloc(Request::USER).unwrap()).collect();
            scope.spawn(move || drop(pages));
        }
    });
    host.drain_all();
    assert_eq!(host.check().unwrap().allocated, 0);
    assert_eq!(host.counters().get("pgfree"), 2000);
}
