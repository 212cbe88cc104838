//! Named findings in words: what was found, the figures that show it, what to try. docs/findings.md says more of each.

use lab::measurements::{Finding, Scene};

use crate::style::Style;
use crate::table::wrap;
use crate::units::{count, duration, memory, plural};

/// Findings that an answer names at most.
const MOST: usize = 3;

/// How a kind of finding is said.
struct Words {
    name: &'static str,
    /// What shows it.
    evidence: fn(&Finding) -> String,
    /// What to try.
    tries: &'static str,
}

const WORDS: [Words; 14] = [
    Words {
        name: "long-batches",
        evidence: |of| {
            let (p99, mean) = (time(of, "p99_ns"), time(of, "mean_ns"));
            format!("{} p99 {p99} with the zone lock held (mean {mean})", of.subject)
        },
        tries: "smaller batches (CONFIG_PCP_BATCH_SCALE_MAX)",
    },
    Words {
        name: "zone-lock-waits",
        evidence: |of| waits(of, "the zone lock"),
        tries: "larger page lists (vm.percpu_pagelist_high_fraction=8)",
    },
    Words {
        name: "list-lock-waits",
        evidence: |of| waits(of, "list_lock and barns"),
        tries: "larger slabs (slab_max_order), or a kernel with sheaves (6.18)",
    },
    Words {
        name: "mmap-lock-waits",
        evidence: |of| waits(of, "mmap_lock"),
        tries: "fewer maps by threads of one process, or processes instead",
    },
    Words {
        name: "few-waiters",
        evidence: |of| {
            let (share, few, tasks) = (percent(of, "of_few_share"), figure(of, "few"), figure(of, "tasks"));
            format!("{share} of lock wait comes from {few:.0} of {} tasks", count(tasks.round()))
        },
        tries: "a look at these tasks (lock_waits of --json)",
    },
    Words {
        name: "direct-reclaim",
        evidence: |of| {
            let (stalls, longest) = (count(figure(of, "stalls")), time(of, "max_ns"));
            format!("{stalls} requests reclaimed pages themselves, {longest} at most")
        },
        tries: "higher marks (vm.watermark_scale_factor), or less in use",
    },
    Words {
        name: "compaction-stalls",
        evidence: |of| {
            let (stalls, failed) = (count(figure(of, "stalls")), count(figure(of, "failed")));
            format!(
                "{stalls} requests compacted memory themselves, {failed} in vain, {} at most",
                time(of, "max_ns")
            )
        },
        tries: "transparent_hugepage.defrag=defer, vm.compaction_proactiveness",
    },
    Words {
        name: "pages-of-other-nodes",
        evidence: |of| {
            format!("{} of pages came from another node than asked for", percent(of, "missed_share"))
        },
        tries: "fewer tasks on that node, or --mempolicy interleave",
    },
    Words {
        name: "remote-accesses",
        evidence: |of| {
            format!("{} of looked-at pages were on another node than the task", percent(of, "remote_share"))
        },
        tries: "--cpus and --mems of one node",
    },
    Words {
        name: "huge-pages-untouched",
        evidence: |of| {
            let grown = memory(figure(of, "rss_grown_pages").round() as u64);
            let (share, huge) = (percent(of, "rss_grown_share"), count(figure(of, "huge_faults").round()));
            format!("peak RSS +{share} ({grown}) by untouched parts of {huge} huge pages")
        },
        tries: "transparent_hugepage.enabled=madvise",
    },
    Words {
        name: "huge-pages-fall-back",
        evidence: |of| {
            let (fell, share) = (count(figure(of, "fell_back")), percent(of, "fell_back_share"));
            format!("{fell} faults that wanted a huge page got a small one ({share})")
        },
        tries: "vm.compaction_proactiveness, transparent_hugepage.defrag",
    },
    Words {
        name: "copies-after-fork",
        evidence: |of| {
            let (copied, share) =
                (memory(figure(of, "copied_pages").round() as u64), percent(of, "copied_share"));
            format!(
                "{copied} ({share}) copied while a fork's child had the pages, faults p99 {}",
                time(of, "fault_p99_ns")
            )
        },
        tries: "forks while little is written",
    },
    Words {
        name: "page-walks",
        evidence: |of| format!("walks of page tables take {} of CPU time", percent(of, "walk_share")),
        tries: "transparent_hugepage.enabled=always",
    },
    Words {
        name: "idle-knob",
        evidence: |of| format!("{} never decided otherwise than its default", of.subject),
        tries: "leaving it alone",
    },
];

fn figure(of: &Finding, name: &str) -> f64 {
    of.figures.get(name).copied().unwrap_or(f64::NAN)
}

fn time(of: &Finding, name: &str) -> String {
    duration(figure(of, name))
}

fn percent(of: &Finding, name: &str) -> String {
    format!("{:.0} %", 100.0 * figure(of, name))
}

fn waits(of: &Finding, lock: &str) -> String {
    let (share, longest) = (percent(of, "wait_share"), time(of, "wait_max_ns"));
    format!("waits for {lock} come to {share} of the run, {longest} at most")
}

/// As many as fit into `words` words, three at most, a line each: what some variants have and others do not comes first, then what
/// weighs most. The last line counts the others. What [`crate::verdict`] says otherwise is not among them.
pub(crate) fn short(style: Style, findings: &[Finding], scenes: &[Scene<'_>], words: usize) -> String {
    let mut kinds = kinds(findings);
    kinds.retain(|kind| kind[0].name != "idle-knob");
    let variants: usize = scenes.iter().map(|scene| scene.groups.len()).sum();
    kinds.sort_by_key(|kind| kind.len() == variants);
    let mut left = words;
    let mut said = vec![];
    for kind in &kinds {
        let line = line(style, kind, &place(kind, scenes));
        let count = line.split_whitespace().count();
        if said.len() < MOST && count <= left {
            left -= count;
            said.push(line);
        }
    }
    let others = (kinds.len() - said.len()) as u64;
    if others > 0 {
        said.push(format!("found: {} more\n", plural(others, "thing")));
    }
    said.concat()
}

/// Which variants it is of: nothing where all have it.
fn place(kind: &[&Finding], scenes: &[Scene<'_>]) -> String {
    let variants: usize = scenes.iter().map(|scene| scene.groups.len()).sum();
    let Some(first) = kind.first().filter(|_| kind.len() < variants) else { return String::new() };
    let name = match first.variant.rsplit_once('=') {
        Some((knob, value)) if !knob.contains(' ') => value,
        _ => &first.variant,
    };
    let machine = if scenes.len() > 1 { format!(" on {}", first.machine) } else { String::new() };
    let more = if kind.len() > 1 { format!(", {} more", kind.len() - 1) } else { String::new() };
    format!(" ({name}{machine}{more})")
}

/// All of them, a line for each kind, under a heading; empty where nothing was found.
pub fn text(style: Style, findings: &[Finding]) -> String {
    let lines: String = kinds(findings).iter().map(|kind| line(style, kind, &everywhere(kind))).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{}\n{lines}", style.heading("what stands out (docs/findings.md)"))
}

/// The findings of one name and subject together, the one that weighs most first.
fn kinds(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut kinds: Vec<Vec<&Finding>> = vec![];
    for finding in findings {
        let is_like = |kind: &&mut Vec<&Finding>| kind[0].name == finding.name;
        match kinds.iter_mut().find(is_like) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds
}

/// Where it was found, in full.
fn everywhere(kind: &[&Finding]) -> String {
    let named = kind.iter().map(|of| match of.variant.as_str() {
        "" => of.machine.clone(),
        variant => format!("{variant} on {}", of.machine),
    });
    let mut names: Vec<String> = named.collect();
    names.dedup();
    format!(" ({})", names.join(", "))
}

/// `found: few-waiters (5): 85 % of lock wait comes from 3 of 40 tasks; try …`.
fn line(style: Style, kind: &[&Finding], place: &str) -> String {
    let Some(first) = kind.first() else { return String::new() };
    let Some(words) = WORDS.iter().find(|words| words.name == first.name) else { return String::new() };
    let text = format!("found: {}{place}: {}; try {}", first.name, (words.evidence)(first), words.tries);
    let lines = wrap(&text, style.columns() - 2).join("\n  ");
    lines.replacen("found:", &style.heading("found:"), 1) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::measurements::{Run, scenes};

    #[test]
    fn every_finding_has_words_and_what_is_to_be_tried_exists() {
        let known: Vec<&str> = lab::findings::FINDINGS.iter().map(|spec| spec.name).collect();
        let said: Vec<&str> = WORDS.iter().map(|words| words.name).collect();
        assert_eq!(said, known);
        for words in &WORDS {
            let finding = Finding { name: words.name.into(), machine: "m".into(), ..Finding::default() };
            assert!(line(Style::plain(), &[&finding], "").starts_with(&format!("found: {}: ", words.name)));
            let names = words.tries.split(|c: char| !(c.is_alphanumeric() || "._".contains(c)));
            let knobs = names
                .filter(|name| name.contains('.') && name.contains('_'))
                .map(|name| name.trim_matches('.'));
            for name in knobs {
                assert!(mm::KNOBS.iter().any(|spec| spec.name == name), "{}: {name}", words.name);
            }
        }
    }

    #[test]
    fn findings_of_a_kind_share_a_line() {
        let finding = |name: &str, variant: &str, share: f64| Finding {
            name: name.into(),
            machine: "m".into(),
            variant: variant.into(),
            figures: [("of_few_share", share), ("few", 3.0), ("tasks", 40.0), ("walk_share", share)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Finding::default()
        };
        let all = [
            finding("few-waiters", "a", 0.85),
            finding("page-walks", "b", 0.2),
            finding("few-waiters", "b", 0.81),
        ];
        let text = text(Style::plain(), &all);
        for part in [
            "what stands out (docs/findings.md)\nfound: few-waiters (a on m, b on m): 85 % of lock wait comes from 3 of 40 tasks; try ",
            "\nfound: page-walks (b on m): walks of page tables take 20 % of CPU time; try transparent_hugepage.enabled=always\n",
        ] {
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat(&text).contains(&flat(part)), "{part} is missing from\n{text}");
        }
    }

    #[test]
    fn an_answer_has_as_many_as_there_is_room_for_and_differences_first() {
        let run = |variant: &str| Run { machine: "m".into(), variant: variant.into(), ..Run::default() };
        let runs = [run("v=a"), run("v=b")];
        let scenes = scenes(&runs);
        let finding = |name: &str, variant: &str| Finding {
            name: name.into(),
            machine: "m".into(),
            variant: variant.into(),
            ..Finding::default()
        };
        let all = [
            finding("few-waiters", "v=a"),
            finding("few-waiters", "v=b"),
            finding("page-walks", "v=b"),
            finding("idle-knob", "v=a"),
        ];
        let told = |words| short(Style::plain(), &all, &scenes, words);
        let both = told(100);
        assert!(
            both.starts_with("found: page-walks (b): ") && both.contains("\nfound: few-waiters: "),
            "{both}"
        );
        assert!(!both.contains("idle-knob") && !both.contains("more"), "{both}");
        let one = told(15);
        assert!(
            one.starts_with("found: page-walks (b): ") && one.ends_with("\nfound: 1 thing more\n"),
            "{one}"
        );
        assert_eq!(told(3), "found: 2 things more\n");
    }
}
