//! Policies and what their rules say: `freehold policies`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lab::evidence::{Check, Held};
use lab::measurements::Label;
use mm::Policy;
use mm::policy::parts::PARTS;
use mm::policy::{DEFAULT_POLICY, FREEHOLD, Mechanism, NEWEST, OLDEST, Origin, RuleInForce, kmmscand};

use crate::style::Style;
use crate::table::{Table, wrap};

/// Kernels, which of them were `held` against the real one, series and parts, and what `freehold` is made of.
pub fn list(style: Style, held: &[Held]) -> String {
    let mut out = style.heading("kernels");
    let _ = writeln!(
        out,
        "\n  linux-{OLDEST} to linux-{NEWEST}, the newest whose rules have been read; {DEFAULT_POLICY} where nothing is said"
    );
    let _ = writeln!(out, "\n{}", style.heading("held against the kernel itself; all others were not"));
    out += &held_table(held).text(2, style.columns());
    let series: Vec<String> = kmmscand().map(|(name, kernel)| format!("{name} (on {kernel})")).collect();
    let _ = writeln!(out, "\n{}\n  {}", style.heading("series that were posted"), series.join(", "));
    let _ = writeln!(out, "\n{}", style.heading("parts, which go on top of any of these"));
    let mut table = Table::new(["<part", "<what it does"]);
    for part in PARTS {
        table.row([format!("+{}", part.name), part.meaning.to_owned()]);
    }
    out += &table.text(2, style.columns());
    let ours: Vec<String> =
        PARTS.iter().filter(|part| part.is_in_freehold()).map(|part| format!("+{}", part.name)).collect();
    let _ = writeln!(out, "\n{}", style.heading(FREEHOLD));
    for line in wrap(&format!("{DEFAULT_POLICY} {}", ours.join(" ")), style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// A row for each policy and kind of check: how many figures were equal, and of which mechanisms.
fn held_table(held: &[Held]) -> Table {
    let mut table = Table::new(["<policy", "<by", "files", "equal", "of", "<of which mechanisms"]);
    let mut said: Vec<(&str, Check)> = vec![];
    for of in held {
        let key = (of.policy.as_str(), of.check);
        if said.contains(&key) {
            continue;
        }
        said.push(key);
        let alike = held.iter().filter(|other| (other.policy.as_str(), other.check) == key);
        let sum = |figure: fn(&Held) -> u64| alike.clone().map(figure).sum::<u64>().to_string();
        // A file tells of several mechanisms; scenes are files of their own.
        let scenes: BTreeSet<&str> = alike.clone().map(|of| of.scene.as_str()).collect();
        let most = alike.clone().map(|of| of.files).max().unwrap_or_default();
        let files = most.max(scenes.len() as u64).to_string();
        let (equal, compared) = (sum(|of| of.equal), sum(|of| of.compared));
        let mechanisms: BTreeSet<Mechanism> = alike.map(|of| of.mechanism).collect();
        let mechanisms: Vec<&str> = mechanisms.into_iter().map(Mechanism::words).collect();
        let (policy, check) = (of.policy.clone(), of.check.name().to_owned());
        table.row([policy, check, files, equal, compared, mechanisms.join(", ")]);
    }
    table
}

/// What a mechanism rests on under a policy.
#[derive(Clone, Debug)]
pub struct MechanismLabels {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// How sure it is what it does.
    pub counts: Label,
    /// How sure it is how long that takes, on a machine.
    pub times: Option<Label>,
}

/// Every rule in force under `policy`, by mechanism, and how sure it is what they do and, where `labels` has it, how long it
/// takes.
pub fn show(style: Style, policy: &Policy, labels: &[MechanismLabels]) -> String {
    let rules = policy.rules_in_force();
    let mut out = style.heading(policy.name());
    out.push('\n');
    for mechanism in Mechanism::ALL {
        let of_it = |rule: &&RuleInForce| rule.mechanisms.first() == Some(&mechanism);
        let mut table = Table::new(["<rule", "<what it decides", "<what it says", "<kernels"]);
        for rule in rules.iter().filter(of_it).filter(|rule| rule.mechanisms.len() < Mechanism::ALL.len()) {
            table.row(row(rule));
        }
        let _ = writeln!(out, "\n{}", style.heading(mechanism.words()));
        for labels in labels.iter().filter(|of| of.mechanism == mechanism) {
            out += &label(style, "counts", &labels.counts);
            out += &labels.times.as_ref().map_or_else(String::new, |times| label(style, "times", times));
        }
        if !table.is_empty() {
            out += &table.text(2, style.columns());
        }
    }
    let mut table = Table::new(["<rule", "<what it decides", "<what it says", "<kernels"]);
    rules
        .iter()
        .filter(|rule| rule.mechanisms.len() == Mechanism::ALL.len())
        .for_each(|rule| table.row(row(rule)));
    let _ = writeln!(out, "\n{}", style.heading("all mechanisms"));
    out + &table.text(2, style.columns())
}

fn label(style: Style, what: &str, label: &Label) -> String {
    let text = format!("{what} {}: {}", label.label, label.reason);
    let mut out = String::new();
    for line in wrap(&text, style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

fn row(rule: &RuleInForce) -> [String; 4] {
    [rule.name.to_owned(), rule.question.to_owned(), rule.answer.clone(), range(rule.origin)]
}

fn range(origin: Origin) -> String {
    match origin {
        Origin::Part => "none: a part".to_owned(),
        Origin::Kernels { since: None, before: None } => "all".to_owned(),
        Origin::Kernels { since: Some(since), before: None } => format!("from {since} on"),
        Origin::Kernels { since: None, before: Some(before) } => format!("before {before}"),
        Origin::Kernels { since: Some(since), before: Some(before) } => {
            format!("from {since}, before {before}")
        }
    }
}

#[cfg(test)]
mod tests {
    use lab::evidence::Table as Evidence;

    use super::*;

    #[test]
    fn scenes_of_a_kernel_are_one_row_that_names_each_mechanism_once() {
        let of = |scene: &str, mechanism: &str, equal: u64| {
            format!(
                "[[held]]\npolicy = 'linux-6.12'\nmechanism = '{mechanism}'\ncheck = 'scenes'\nscene = '{scene}'\nfiles = 1\ncompared = 9\n\
                 equal = {equal}\n"
            )
        };
        let rows = [("a", "huge-pages", 9), ("a", "address-spaces", 8), ("b", "huge-pages", 7)];
        let table =
            Evidence::parse(&rows.map(|(scene, mechanism, equal)| of(scene, mechanism, equal)).concat());
        insta::assert_snapshot!(held_table(&table.unwrap().held).text(0, 100), @"
        policy      by      files  equal  of  of which mechanisms
        linux-6.12  scenes      2     24  27  address spaces, huge pages
        ");
    }
}
