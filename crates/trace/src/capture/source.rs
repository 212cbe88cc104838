//! Where the events of a recording come from: our programs in the kernel with perf beside them, which tells of tasks and mappings and
//! of tracepoints that no program is for; or perf alone.

use std::str::FromStr;

use super::bpf::{self, Belongs, CompactRing, CountedPages, Left, Load, Programs, Watched};
use super::perf::{Events, Wanted};
use super::ring::{self, Ring};
use super::{host, zoneinfo};
use crate::error::RecordError;
use crate::stream::compact::compact_records;
use crate::stream::record::{Layout, Record, RecordHead};

/// Pages of perf's rings where programs record most.
const RING_PAGES_BESIDE: usize = 256;

/// How events are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Via {
    /// By programs in the kernel where it has them, otherwise by perf.
    #[default]
    Auto,
    /// By programs in the kernel.
    Bpf,
    /// By perf.
    Perf,
}

impl FromStr for Via {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "bpf" => Ok(Self::Bpf),
            "perf" => Ok(Self::Perf),
            _ => Err(format!("there is no way to record called {name:?}; there are auto, bpf, perf")),
        }
    }
}

/// What is to be recorded.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) via: Via,
    /// The tracepoints: what recordings call them and their numbers.
    pub(super) tracepoints: Vec<(String, u16)>,
    /// Whether what is mapped is told, with its file.
    pub(super) maps: bool,
    pub(super) watched: Watched,
    /// Pages in each CPU's ring.
    pub(super) ring_pages: usize,
}

/// A ring, by whomever it is written.
#[derive(Debug)]
pub(super) enum AnyRing {
    /// perf writes it.
    Perf(Ring),
    /// Our programs do.
    Compact(CompactRing),
}

impl AnyRing {
    /// Appends all that is there to `out`.
    pub(super) fn drain(&mut self, out: &mut Vec<u8>) -> Left {
        match self {
            Self::Perf(ring) => {
                ring.drain(out);
                Left::Nothing
            }
            Self::Compact(ring) => ring.drain(out),
        }
    }

    /// What poll(2) can wait for; nobody is woken by programs.
    pub(super) fn fd(&self) -> Option<i32> {
        match self {
            Self::Perf(ring) => Some(ring.fd()),
            Self::Compact(_) => None,
        }
    }
}

/// How a ring's records are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Written {
    ByPerf,
    ByPrograms,
}

/// What is known of a ring without looking at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Feed {
    pub(super) cpu: u32,
    written: Written,
}

impl Feed {
    /// Hands on the records in what a ring of this kind gave: time, head and body of each.
    pub(super) fn each(self, bytes: &[u8], mut take: impl FnMut(u64, RecordHead, &[u8])) {
        match self.written {
            Written::ByPerf => {
                for (head, body) in ring::records(bytes) {
                    if let Some((origin, _)) = Layout::OURS.parse(head, body) {
                        take(origin.time, head, body);
                    }
                }
            }
            Written::ByPrograms => {
                for (record, body) in compact_records(bytes) {
                    take(record.time(), RecordHead::COMPACT, body);
                }
            }
        }
    }
}

/// Events, stopped at first.
#[derive(Debug)]
pub(super) struct Source {
    perf: Events,
    programs: Option<Programs>,
    /// The rings; whoever empties them takes them away.
    pub(super) rings: Vec<AnyRing>,
    /// What each ring is, in their order.
    pub(super) feeds: Vec<Feed>,
    /// Why programs could not be had, where that was tried.
    pub(super) refusal: Option<String>,
}

impl Source {
    /// Opens what is planned.
    ///
    /// # Errors
    /// What is not permitted or missing and how to get it.
    pub(super) fn open(plan: &Plan) -> Result<Self, RecordError> {
        let refusal = match plan.via {
            Via::Perf => None,
            via => match load(plan) {
                Ok(programs) => return Self::of(plan, Some(programs), None),
                Err(why) if via == Via::Bpf => {
                    return Err(RecordError::Missing(format!("BPF cannot record here: {why}")));
                }
                Err(why) => Some(why),
            },
        };
        Self::of(plan, None, refusal)
    }

    fn of(plan: &Plan, programs: Option<Programs>, refusal: Option<String>) -> Result<Self, RecordError> {
        let is_left = |name: &str| !programs.as_ref().is_some_and(|programs| programs.cover(name));
        let tracepoints = plan.tracepoints.iter().filter(|(name, _)| is_left(name)).map(|(_, id)| *id);
        let wanted = Wanted { tracepoints: tracepoints.collect(), maps: plan.maps };
        let perf_pages = match programs {
            Some(_) => plan.ring_pages.min(RING_PAGES_BESIDE),
            None => plan.ring_pages,
        };
        let mut source = Self::perf(Events::open(&wanted, &host::online_cpus(), perf_pages)?);
        if let Some(programs) = &programs {
            for &cpu in &source.perf.cpus {
                source.rings.push(AnyRing::Compact(programs.ring(cpu)));
                source.feeds.push(Feed { cpu, written: Written::ByPrograms });
            }
        }
        Ok(Self { programs, refusal, ..source })
    }

    /// Events of perf's alone.
    pub(super) fn perf(mut perf: Events) -> Self {
        let rings = std::mem::take(&mut perf.rings).into_iter().map(AnyRing::Perf).collect();
        let feeds = perf.cpus.iter().map(|&cpu| Feed { cpu, written: Written::ByPerf }).collect();
        Self { perf, programs: None, rings, feeds, refusal: None }
    }

    /// What recordings call the way that was taken.
    pub(super) const fn name(&self) -> &'static str {
        if self.programs.is_some() { "bpf" } else { "perf" }
    }

    /// Tracepoints of the programs' own that this kernel lacks.
    pub(super) fn missed(&self) -> Vec<String> {
        let missed = self.programs.iter().flat_map(Programs::missed);
        missed.map(|name| (*name).to_owned()).collect()
    }

    /// Starts all events.
    pub(super) fn enable(&mut self) -> Result<(), RecordError> {
        // perf's first: it tells of new tasks before these are seen to do something.
        self.perf.enable()?;
        let started = self.programs.as_mut().map_or(Ok(()), Programs::start);
        started.map_err(|error| RecordError::System { what: "attaching programs to tracepoints", error })
    }

    /// Stops all events.
    pub(super) fn disable(&mut self) -> Result<(), RecordError> {
        if let Some(programs) = &mut self.programs {
            programs.stop();
        }
        self.perf.disable()
    }

    /// How many events found no room in all; `None` if this kernel (before 6.0) does not count.
    pub(super) fn lost(&self) -> Option<u64> {
        match (self.perf.lost(), self.programs.as_ref().map(Programs::lost)) {
            (None, None) => None,
            (by_perf, by_programs) => Some(by_perf.unwrap_or(0) + by_programs.unwrap_or(0)),
        }
    }

    /// Of the lost events, those that the kernel skipped a program for.
    pub(super) fn skipped(&self) -> u64 {
        self.programs.as_ref().map_or(0, Programs::skipped_events)
    }

    /// Whether page events can be sampled: programs record them.
    pub(super) const fn can_sample(&self) -> bool {
        self.programs.is_some()
    }

    /// From here on page events of one unit of frames in `one_in`, a power of two, are recorded.
    pub(super) fn sample_pages(&self, one_in: u32) {
        self.programs.iter().for_each(|programs| programs.sample_pages(one_in));
    }

    /// What was sampled away of page events so far.
    pub(super) fn counted(&self) -> CountedPages {
        self.programs.as_ref().map(Programs::counted).unwrap_or_default()
    }

    /// Says that tasks belong to the workload, or do not.
    pub(super) fn set_members(&self, tids: impl IntoIterator<Item = u32>, belong: Belongs) {
        if let Some(programs) = &self.programs {
            tids.into_iter().for_each(|tid| programs.set_member(tid, belong));
        }
    }

    /// Empties the rings and counts what they had of task `tid`'s events.
    pub(super) fn count(&mut self, tid: u32) -> usize {
        let mut bytes = vec![];
        let mut count = 0;
        for (ring, feed) in self.rings.iter_mut().zip(&self.feeds) {
            bytes.clear();
            ring.drain(&mut bytes);
            feed.each(&bytes, |_, head, body| {
                let parsed = Layout::OURS.parse(head, body);
                count += usize::from(parsed.is_some_and(|(origin, record)| {
                    origin.tid == tid && matches!(record, Record::Sample(_) | Record::Compact(_))
                }));
            });
        }
        count
    }
}

fn load(plan: &Plan) -> Result<Programs, String> {
    let types = bpf::types()?;
    let names: Vec<String> = plan.tracepoints.iter().map(|(name, _)| name.clone()).collect();
    let load = Load {
        tracepoints: &names,
        watched: plan.watched,
        pages: bpf::learn(&types)?,
        zones: &zoneinfo::parse(&host::zoneinfo()),
        cpus: &host::online_cpus(),
        ring_pages: plan.ring_pages,
    };
    Programs::load(&load, &types)
}
