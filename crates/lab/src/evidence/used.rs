//! Which mechanisms a run used, as its spans and counters say.

use mm::ZoneKind;
use mm::policy::Mechanism;

use crate::measurements::Run;

/// Requests that another node served, by a hundred of all, from which on the order of zonelists matters.
const ELSEWHERE_PERCENT: u64 = 1;

/// The mechanisms that `run` really used, in the order of [`Mechanism::ALL`].
pub fn used(run: &Run) -> Vec<Mechanism> {
    Mechanism::ALL.into_iter().filter(|mechanism| uses(run, *mechanism)).collect()
}

fn uses(run: &Run, mechanism: Mechanism) -> bool {
    match mechanism {
        Mechanism::PageLists => {
            timed(run, &["refill", "drain", "page_alloc", "page_free"]) || run.counter("pgalloc") > 0
        }
        Mechanism::Slabs => timed(run, &["slab_alloc", "slab_free"]) || counted(run, mechanism),
        Mechanism::Zonelists => {
            100 * run.counter("numa_miss") > ELSEWHERE_PERCENT * run.counter("pgalloc").max(1)
                || run.sequences.keys().any(|key| key.starts_with("zonelist."))
                || low_zones(run)
        }
        // The marks decide who must reclaim; where nobody had to, memory was never near them.
        Mechanism::Watermarks => reclaims(run),
        Mechanism::AddressSpaces => run.counter("pgfault") > 0,
        Mechanism::Reclaim => reclaims(run) && !by_generations(run),
        Mechanism::Generations => reclaims(run) && by_generations(run),
        Mechanism::Compaction => timed(run, &["compact"]) || counted(run, mechanism),
        Mechanism::HugePages | Mechanism::Promotion => counted(run, mechanism),
    }
}

fn reclaims(run: &Run) -> bool {
    timed(run, &["direct_reclaim"]) || counted(run, Mechanism::Reclaim)
}

/// Whether its kernel kept pages by generations.
fn by_generations(run: &Run) -> bool {
    run.knobs.get("lru_gen.enabled").is_some_and(|value| !matches!(value.to_string().as_str(), "0" | "n"))
}

/// Whether pages came from more than one kind of zone.
fn low_zones(run: &Run) -> bool {
    let all = run.counter("pgalloc").max(1);
    let share = |kind: &ZoneKind| {
        let name = format!("pgalloc_{}", kind.name().to_lowercase());
        run.counters.get(&name).is_some_and(|pages| 100 * pages > ELSEWHERE_PERCENT * all)
    };
    ZoneKind::ALL.iter().filter(|kind| share(kind)).count() > 1
}

fn timed(run: &Run, spans: &[&str]) -> bool {
    let is_one = |key: &String| spans.contains(&key.rsplit('/').next().unwrap_or(key));
    run.latency.keys().any(is_one)
}

fn counted(run: &Run, mechanism: Mechanism) -> bool {
    run.counters.iter().any(|(name, &count)| count > 0 && of_counter(name) == Some(mechanism))
}

/// The mechanism that a counter is of, where it is of one alone.
pub(crate) fn of_counter(name: &str) -> Option<Mechanism> {
    const HEADS: &[(&str, Mechanism)] = &[
        ("pgscan", Mechanism::Reclaim),
        ("pgsteal", Mechanism::Reclaim),
        ("pgrefill", Mechanism::Reclaim),
        ("pgdemote", Mechanism::Reclaim),
        ("allocstall", Mechanism::Reclaim),
        ("pageoutrun", Mechanism::Reclaim),
        ("kswapd_", Mechanism::Reclaim),
        ("compact_", Mechanism::Compaction),
        ("freehold_compact_", Mechanism::Compaction),
        ("fragmentation_index", Mechanism::Compaction),
        ("thp_", Mechanism::HugePages),
        ("thpscale_", Mechanism::HugePages),
        ("pgpromote", Mechanism::Promotion),
        ("numa_pte_updates", Mechanism::Promotion),
        ("numa_hint_faults", Mechanism::Promotion),
        ("numa_pages_migrated", Mechanism::Promotion),
        ("accesses_", Mechanism::Promotion),
        ("numa_miss", Mechanism::Zonelists),
        ("slab_", Mechanism::Slabs),
    ];
    HEADS.iter().find(|(head, _)| name.starts_with(head)).map(|(_, mechanism)| *mechanism)
}
