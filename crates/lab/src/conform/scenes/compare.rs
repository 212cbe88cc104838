//! What a kernel counted at the marks of a scene, and the comparison.

use std::collections::{BTreeMap, VecDeque};

use mm::policy::Mechanism;
use mm::version::Version;

use super::counted;
use super::seen::{Marks, Seen};
use crate::conform::outcome::{FileKind, FileOutcome};
use crate::conform::read::capture::kernel_version;
use crate::conform::read::sections::{FormatError, Section, Sections};

/// A mark of a capture.
#[derive(Debug, Default)]
pub(super) struct Mark<'a> {
    pub(super) label: &'a str,
    /// When, in ns.
    at: u64,
    /// The program's minor and major faults.
    faults: (u64, u64),
    pub(super) events: BTreeMap<&'a str, u64>,
    /// By region, then by what it counts, by eighths.
    pub(super) regions: BTreeMap<&'a str, BTreeMap<&'a str, [u64; 8]>>,
    /// By region, its pages.
    pub(super) pages: BTreeMap<&'a str, u64>,
    /// By group, its statistics and its events, these with `events ` before their names.
    pub(super) groups: BTreeMap<&'a str, BTreeMap<&'a str, u64>>,
}

/// The marks of a capture, in order.
pub(super) fn marks(text: &str) -> Result<Vec<Mark<'_>>, FormatError> {
    let mut marks: Vec<Mark<'_>> = vec![];
    let tells_of_files = Sections::of(text).get("uname").is_some_and(has_cachestat);
    let mut section = "";
    let mut rest: Vec<&str> = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(name) = line.strip_prefix("@@") {
            section = name.split_whitespace().next().unwrap_or("");
            rest = name.split_whitespace().skip(1).collect::<Vec<_>>();
            if section == "mark" {
                let label = name.split_whitespace().nth(2).unwrap_or("");
                marks.push(Mark { label, ..Mark::default() });
            }
            continue;
        }
        let Some(mark) = marks.last_mut() else { continue };
        let bad = || FormatError::new(number, "this line of a mark cannot be read");
        match section {
            "mark" if line.starts_with("time_us=") => {
                mark.faults = faults(line).ok_or_else(bad)?;
                mark.at = time(line).ok_or_else(bad)?;
            }
            "vmstat" => {
                if let Some((name, value)) = line.split_once(' ') {
                    mark.events.insert(name, value.parse().map_err(|_| bad())?);
                }
            }
            "residency" if line.contains(" region ") || (tells_of_files && line.contains(" file ")) => {
                let (name, counts) = region(line).ok_or_else(bad)?;
                let pages = line.split_whitespace().find_map(|word| word.strip_prefix("pages="));
                mark.pages.insert(name, pages.and_then(|pages| pages.parse().ok()).ok_or_else(bad)?);
                mark.regions.insert(name, counts);
            }
            "cgroup" => of_group(mark, &rest, line),
            _ => {}
        }
    }
    Ok(marks)
}

/// Whether a kernel can say what of a file is in memory: before 6.5 a scene has noughts there.
fn has_cachestat(uname: &Section<'_>) -> bool {
    let version = uname.lines.first().map(|(_, release)| kernel_version(release));
    version.is_some_and(|version| version.is_ok_and(|version| version >= Version::new(6, 5)))
}

/// A line of `memory.stat` or `memory.events` of a group.
fn of_group<'a>(mark: &mut Mark<'a>, section: &[&'a str], line: &'a str) {
    let Some((name, value)) = line.split_once(' ') else { return };
    let Ok(value) = value.trim().parse() else { return };
    let (group, name) = match section {
        [group, "memory.stat"] => (group, name),
        [group, "memory.events"] => (group, event_name(name)),
        _ => return,
    };
    mark.groups.entry(group).or_default().insert(name, value);
}

fn event_name(name: &str) -> &'static str {
    match name {
        "low" => "events low",
        "high" => "events high",
        "max" => "events max",
        "oom" => "events oom",
        "oom_kill" => "events oom_kill",
        _ => "events of other kinds",
    }
}

/// By label, when the marks were, in ns.
pub(super) fn times(marks: &[Mark<'_>]) -> BTreeMap<String, VecDeque<u64>> {
    let mut times: BTreeMap<String, VecDeque<u64>> = BTreeMap::new();
    for mark in marks {
        times.entry(mark.label.to_owned()).or_default().push_back(mark.at);
    }
    times
}

/// Marks of both sides, in the kernel's order: of the same label the first with the first, and so on. The second: how many marks of
/// a play have none.
fn pairs<'a>(marks: &'a [Mark<'a>], seen: &'a [Seen]) -> (Vec<(&'a Mark<'a>, &'a Seen)>, usize) {
    let mut left: BTreeMap<&str, VecDeque<&Seen>> = BTreeMap::new();
    for seen in seen {
        left.entry(&seen.label).or_default().push_back(seen);
    }
    let seen = |mark: &'a Mark<'a>| Some((mark, left.get_mut(mark.label)?.pop_front()?));
    let both = marks.iter().filter_map(seen).collect();
    (both, left.values().map(VecDeque::len).sum())
}

fn time(line: &str) -> Option<u64> {
    let us: u64 = line.strip_prefix("time_us=")?.split_whitespace().next()?.parse().ok()?;
    us.checked_mul(1000)
}

fn faults(line: &str) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        word.strip_prefix('=')?.parse().ok()
    };
    Some((of("minor_faults")?, of("major_faults")?))
}

fn region(line: &str) -> Option<(&str, BTreeMap<&str, [u64; 8]>)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let mut all = BTreeMap::new();
    for word in words {
        let Some((what, counts)) = word.split_once('=') else { continue };
        let counts: Vec<u64> = counts.split(',').filter_map(|count| count.parse().ok()).collect();
        if let Ok(eighths) = <[u64; 8]>::try_from(counts) {
            all.insert(what, eighths);
        }
    }
    Some((name, all))
}

/// Events that are compared: what repeats exactly on the kernel's side, and does not count what else runs there.
fn is_compared(event: &str) -> bool {
    event.starts_with("thp_") || event == "pglazyfree"
}

/// What is compared of a region: which pages are active depends on what the recorder's own pages do to a CPU's batch.
const OF_REGIONS: [&str; 7] = ["cached", "present", "swapped", "huge", "zero", "node0", "node1"];

/// Compares mark by mark: counts since the mark before, and what is resident. What is 0 on both sides is not counted.
pub(super) fn compare(sections: &Sections<'_>, marks: &[Mark<'_>], played: &Marks) -> FileOutcome {
    let mut outcome = FileOutcome::new(FileKind::Scene);
    outcome.policy = format!("linux-{}", release(sections.word("uname")));
    outcome.kept_by = Some(if played.by_generations { Mechanism::Generations } else { Mechanism::Reclaim });
    let (both, unsaid) = pairs(marks, &played.seen);
    // A process's count of faults goes on from its mark before.
    let mut before: Option<(&Mark<'_>, &Seen)> = None;
    let mut faults: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for &(mark, seen) in &both {
        if was_short(mark, seen) {
            // From here on nothing is equal to the page.
            break;
        }
        let whose = Whose::between(before.map(|(mark, _)| mark), mark);
        if seen.process > 0 {
            outcome.mechanism = Some(whose.faults());
            compare_faults(&mut outcome, (mark, seen), &mut faults);
        }
        compare_events(&mut outcome, (mark, seen), before, whose);
        compare_regions(&mut outcome, (mark, seen), whose);
        before = Some((mark, seen));
    }
    let short = both.iter().any(|(mark, seen)| was_short(mark, seen));
    if short
        || both.iter().any(|(mark, _)| mark.events.get("numa_hint_faults").is_some_and(|&faults| faults > 0))
    {
        outcome.counters = counted::counters(&both);
    }
    outcome.short = counted::shortage(&both);
    if short {
        outcome.stayed = counted::stayed(&both);
    }
    let machine = sections.get("scene").into_iter().flat_map(|scene| &scene.lines);
    if machine.into_iter().any(|(_, line)| line.starts_with("machine ") && line.contains("device virtio")) {
        outcome.notes.push("its disk has a queue; here reading, writing and swapping take no time".into());
    }
    if played.stopped.is_none() {
        let log = sections.get("log").into_iter().flat_map(|log| &log.lines);
        let refused = log.filter(|(_, line)| line.ends_with(')') && line.contains(" (E")).count();
        if refused + played.refused.len() > 0 {
            outcome.mechanism = Some(Mechanism::AddressSpaces);
            outcome.compare(|| "calls refused".into(), refused as u64, played.refused.len() as u64);
        }
    }
    let compared = format!("compared at {} of {} marks", both.len(), marks.len());
    match (&played.stopped, &played.ended) {
        (Some(why), _) => outcome.notes.push(format!("{compared}: {why}")),
        (None, Some(why)) if both.len() < marks.len() || unsaid > 0 => {
            outcome.notes.push(format!("{compared}: the program ended early: {why}"));
        }
        (None, _) if both.len() < marks.len() || unsaid > 0 => {
            outcome.notes.push(format!("{compared}; {unsaid} that the kernel's program did not come to"));
        }
        (None, _) => {}
    }
    if !played.unplayed.is_empty() {
        outcome.notes.push(format!("set, and not played: {}", played.unplayed.join(", ")));
    }
    outcome
}

/// Whose doing a figure is: by what its kernel did since the mark before.
#[derive(Clone, Copy)]
struct Whose {
    compacted: bool,
    hinted: bool,
}

impl Whose {
    fn between(before: Option<&Mark<'_>>, mark: &Mark<'_>) -> Self {
        let rose = |name: &str| {
            let count = |mark: &Mark<'_>| mark.events.get(name).copied().unwrap_or(0);
            count(mark) > before.map_or(0, count)
        };
        Self { compacted: rose("compact_migrate_scanned"), hinted: rose("numa_hint_faults") }
    }

    fn faults(self) -> Mechanism {
        if self.hinted { Mechanism::Promotion } else { Mechanism::AddressSpaces }
    }

    fn event(self, name: &str) -> Mechanism {
        match name.starts_with("thp_") {
            true if self.compacted => Mechanism::Compaction,
            true => Mechanism::HugePages,
            false => Mechanism::AddressSpaces,
        }
    }

    fn region(self, what: &str) -> Mechanism {
        match what {
            "huge" | "zero" if self.compacted => Mechanism::Compaction,
            "huge" | "zero" => Mechanism::HugePages,
            "node0" | "node1" if self.hinted => Mechanism::Promotion,
            "node0" | "node1" => Mechanism::Zonelists,
            _ => Mechanism::AddressSpaces,
        }
    }
}

/// Whether pages had been reclaimed by then, on either side.
fn was_short(mark: &Mark<'_>, seen: &Seen) -> bool {
    ["pgscan_anon", "pgscan_file"].iter().any(|name| {
        mark.events.get(name).copied().unwrap_or(0) > 0 || seen.events.get(*name).copied().unwrap_or(0) > 0
    })
}

fn release(uname: &str) -> String {
    uname.split(['.', '-']).take(2).collect::<Vec<_>>().join(".")
}

fn compare_faults(
    outcome: &mut FileOutcome,
    (mark, seen): (&Mark<'_>, &Seen),
    last: &mut BTreeMap<u32, (u64, u64)>,
) {
    let Some((minor, major)) = seen.faults else {
        last.insert(seen.process, mark.faults);
        return;
    };
    let then = last.insert(seen.process, mark.faults).unwrap_or_default();
    let label = mark.label;
    let kernel = (mark.faults.0.saturating_sub(then.0), mark.faults.1.saturating_sub(then.1));
    for (what, kernel, ours) in [("minor faults", kernel.0, minor), ("major faults", kernel.1, major)] {
        if kernel != 0 || ours != 0 {
            outcome.compare(|| format!("mark {label}: {what}"), kernel, ours);
        }
    }
}

fn compare_events(
    outcome: &mut FileOutcome,
    (mark, seen): (&Mark<'_>, &Seen),
    before: Option<(&Mark<'_>, &Seen)>,
    whose: Whose,
) {
    let label = mark.label;
    for (&event, &kernel) in mark.events.iter().filter(|(event, _)| is_compared(event)) {
        let ours = seen.events.get(event).copied().unwrap_or(0);
        let then = before.map_or((0, 0), |(mark, seen)| {
            let ours = seen.events.get(event).copied().unwrap_or(0);
            (mark.events.get(event).copied().unwrap_or(0), ours)
        });
        let (kernel, ours) = (kernel.saturating_sub(then.0), ours.saturating_sub(then.1));
        if kernel != 0 || ours != 0 {
            outcome.mechanism = Some(whose.event(event));
            outcome.compare(|| format!("mark {label}: {event}"), kernel, ours);
        }
    }
}

fn compare_regions(outcome: &mut FileOutcome, (mark, seen): (&Mark<'_>, &Seen), whose: Whose) {
    let none = BTreeMap::new();
    for (&name, kernel) in &mark.regions {
        let ours = seen.regions.get(name).unwrap_or(&none);
        for what in OF_REGIONS.iter().filter(|what| kernel.contains_key(*what)) {
            let (kernel, ours) = (kernel[what], ours.get(what).copied().unwrap_or_default());
            if kernel.iter().chain(&ours).any(|&pages| pages != 0) {
                outcome.mechanism = Some(whose.region(what));
                let of = |pages: [u64; 8]| pages.map(|pages| pages.to_string()).join(",");
                outcome.compare(|| format!("mark {}: {name} {what}", mark.label), of(kernel), of(ours));
            }
        }
    }
}
