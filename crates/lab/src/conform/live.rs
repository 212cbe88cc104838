//! A recording of this machine as a page trace: what freehold recorded itself needs no text files.

use mm::{Node, Order, ZoneKind};
use trace::{EventKind as Recorded, Meta};

use super::outcome::FileOutcome;
use crate::conform::read::beside::{Beside, spans_said};
use crate::conform::read::sections::{FormatError, Section};
use crate::conform::read::trace_csv::{Event, EventKind, PageTrace};
use crate::conform::read::zoneinfo::{self, ZoneInfo};

/// A recording of everybody's page events on a machine, from beginning to end.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// The machine, with zoneinfo as it was when the recording began.
    pub meta: &'a Meta,
    /// `/proc/zoneinfo` when it had ended.
    pub zoneinfo_after: &'a str,
    /// The events, in order.
    pub events: &'a [trace::Event],
}

/// Gives mm the allocations and frees of a recording and holds its refills and drains against the kernel's.
///
/// # Errors
/// If the recording has no page event or does not describe its machine, or the kernel is one without rules.
pub fn conform_recording(live: Live<'_>) -> Result<FileOutcome, FormatError> {
    super::pages::conform(&page_trace(live.events)?, &beside(live)?)
}

fn page_trace(events: &[trace::Event]) -> Result<PageTrace, FormatError> {
    let mut trace = PageTrace::default();
    let mut tasks = std::collections::HashMap::new();
    for (index, event) in events.iter().enumerate() {
        let Some(page) = page_event(&event.kind) else {
            trace.passed_over += 1;
            continue;
        };
        let known = tasks.len().min(usize::from(u16::MAX)) as u16;
        let task = *tasks.entry(event.task).or_insert_with(|| {
            trace.tasks.push(event.task.0.to_string());
            known
        });
        let place =
            Event { time_us: event.time.0 / 1000, line: index as u32 + 1, cpu: event.cpu.0, task, ..page };
        trace.events.push(place);
    }
    if trace.events.is_empty() {
        return Err(FormatError::new(0, "the recording holds no page event"));
    }
    trace.index_pages();
    Ok(trace)
}

/// What happened to which page; where and when is left at 0.
fn page_event(kind: &Recorded) -> Option<Event> {
    let (kind, pfn, order, migratetype) = match *kind {
        Recorded::PageAlloc { pfn, order, migratetype, .. } => {
            (EventKind::Alloc, pfn, order, Some(migratetype))
        }
        Recorded::ZoneLocked { pfn, order, migratetype, percpu_refill } => {
            let kind = if percpu_refill { EventKind::Refill } else { EventKind::ZoneLocked };
            (kind, pfn, order, Some(migratetype))
        }
        Recorded::PageFree { pfn, order } => (EventKind::Free, pfn, order, None),
        Recorded::PageFreeBatched { pfn } => (EventKind::FreeBatched, pfn, Order::ZERO, None),
        Recorded::PcpuDrain { pfn, order, migratetype } => (EventKind::Drain, pfn, order, Some(migratetype)),
        _ => return None,
    };
    let migratetype = migratetype.map_or(0, |of| of.index() as u8);
    Some(Event { time_us: 0, pfn, page: 0, line: 0, cpu: 0, task: 0, kind, order, migratetype })
}

fn beside(live: Live<'_>) -> Result<Beside, FormatError> {
    let meta = live.meta;
    let (before, after) = (populated(&meta.zoneinfo)?, populated(live.zoneinfo_after)?);
    let Some(spans) = spans_said(&before).filter(|_| !before.is_empty()) else {
        return Err(FormatError::new(0, "the recording does not say where its machine's zones lie"));
    };
    let scale = meta.vm.get("pcp_batch_scale_max").and_then(|scale| scale.parse().ok());
    let mut cpu_nodes = vec![Node(0); meta.cpus as usize];
    for node in &meta.nodes {
        for &cpu in &node.cpus {
            if let Some(of_cpu) = cpu_nodes.get_mut(usize::from(cpu)) {
                *of_cpu = Node(node.node);
            }
        }
    }
    let lost = live.events.iter().map(|event| match event.kind {
        Recorded::Lost { count } => count,
        _ => 0,
    });
    Ok(Beside {
        release: meta.kernel.clone(),
        scale,
        lost: lost.sum(),
        cache_slice: meta.cache.map_or(0, |cache| cache.bytes / u64::from(cache.shared_by.max(1))),
        spans,
        cpu_nodes,
        before,
        after,
    })
}

fn populated(text: &str) -> Result<Vec<ZoneInfo>, FormatError> {
    let mut zones = zoneinfo::zones(&Section::whole(text))?;
    zones.retain(|zone| zone.managed > 0 && ZoneKind::from_name(&zone.name).is_some());
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use mm::{Cpu, MigrateType, Nanos, Pfn, TaskId};
    use trace::Gfp;

    use super::*;

    fn events() -> Vec<trace::Event> {
        let (pfn, order, migratetype) = (Pfn(77), Order::ZERO, MigrateType::Movable);
        let kinds = [
            Recorded::Exit,
            Recorded::ZoneLocked { pfn, order, migratetype, percpu_refill: true },
            Recorded::ZoneLocked {
                pfn: Pfn(128),
                order: Order::PAGEBLOCK,
                migratetype,
                percpu_refill: false,
            },
            Recorded::PageAlloc { pfn, order, migratetype, gfp: Gfp::HIGHUSER_MOVABLE },
            Recorded::PageFree { pfn, order },
            Recorded::PageFreeBatched { pfn },
            Recorded::PcpuDrain { pfn, order, migratetype },
        ];
        let at = |(index, kind)| trace::Event {
            time: Nanos(1_000_000 * index),
            cpu: Cpu(1),
            task: TaskId(3),
            kind,
        };
        (3u64..).zip(kinds).map(at).collect()
    }

    #[test]
    fn a_recording_is_the_same_trace_as_its_text() {
        let text = "seconds,cpu,task,event,pfn,order,migratetype,extra\n\
                    0.004,1,3,zone_locked,77,0,1,refill\n0.005,1,3,zone_locked,128,9,1,\n0.006,1,3,alloc,77,0,1,\n\
                    0.007,1,3,free,77,0,,\n0.008,1,3,free_batched,77,0,,\n0.009,1,3,pcpu_drain,77,0,1,\n";
        let (read, live) = (PageTrace::parse(text).unwrap(), page_trace(&events()).unwrap());
        assert_eq!((&live.events, &live.tasks, &live.pfns), (&read.events, &read.tasks, &read.pfns));
        assert_eq!(live.passed_over, 1);
    }

    #[test]
    fn the_machine_is_as_the_recording_describes_it() {
        let zoneinfo = "Node 0, zone   Normal\n  pages free     900\n        min      10\n        low      12\n        \
                        high     15\n        spanned  4096\n        present  4096\n        managed  4000\n  pagesets\n    cpu: 1\n              \
                        count:    3\n              high:     80\n              batch:    1\n  start_pfn:           4096\n";
        let node = trace::NodeInfo { node: 0, cpus: vec![0, 1], distance: vec![10] };
        let cache = Some(trace::CacheInfo { bytes: 8 << 20, shared_by: 2 });
        let meta = Meta {
            kernel: "6.18.1".into(),
            cpus: 2,
            nodes: vec![node],
            cache,
            zoneinfo: zoneinfo.into(),
            ..Meta::default()
        };
        let events = events();
        let beside = beside(Live { meta: &meta, zoneinfo_after: zoneinfo, events: &events }).unwrap();
        assert_eq!((beside.cpu_nodes.len(), beside.cache_slice, beside.scale), (2, 4 << 20, None));
        assert_eq!((beside.spans.len(), &beside.spans[0]), (1, &(4096..8192)));
        assert!(beside.topology().is_ok());
        let blind = Meta { zoneinfo: String::new(), ..meta };
        let error =
            conform_recording(Live { meta: &blind, zoneinfo_after: zoneinfo, events: &events }).unwrap_err();
        assert_eq!(error.to_string(), "zoneinfo names no zone");
    }
}
