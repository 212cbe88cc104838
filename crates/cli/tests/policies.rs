//! `freehold policies`, and names of policies that are refused.

mod common;

use common::{refusal, stdout};

#[test]
fn the_list_has_the_range_of_kernels_every_part_and_what_freehold_is() {
    let text = stdout(&["policies"]);
    for part in
        ["linux-3.0 to linux-7.2", "kmmscand-v0 (on 6.11)", "+yield", "+promote", "linux-6.18 +yield +arenas"]
    {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let document: serde_json::Value = serde_json::from_str(&stdout(&["policies", "list", "--json"])).unwrap();
    assert_eq!((&document["oldest"], &document["newest"]), (&"linux-3.0".into(), &"linux-7.2".into()));
    let parts = document["parts"].as_array().unwrap();
    assert_eq!(parts.len(), mm::policy::parts::PARTS.len());
    assert!(parts.iter().any(|part| part["name"] == "zones" && part["freehold"] == false));
}

#[test]
fn the_list_says_which_kernels_were_held_against_what() {
    let table = lab::evidence::Table::bundled();
    let text = stdout(&["policies"]);
    let document: serde_json::Value = serde_json::from_str(&stdout(&["policies", "--json"])).unwrap();
    let held = document["held"].as_array().unwrap();
    assert_eq!(held.len(), table.held.len());
    for (of, json) in table.held.iter().zip(held) {
        assert_eq!((&json["policy"], &json["equal"]), (&of.policy.as_str().into(), &of.equal.into()));
        let line = text.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(of.policy.as_str()) && words.next() == Some(of.check.name())
        });
        let line =
            line.unwrap_or_else(|| panic!("{} by {} is missing from\n{text}", of.policy, of.check.name()));
        let sum = |figure: fn(&lab::evidence::Held) -> u64| -> u64 {
            let alike =
                table.held.iter().filter(|other| (&other.policy, other.check) == (&of.policy, of.check));
            alike.map(figure).sum()
        };
        let figures: Vec<u64> =
            line.split_whitespace().skip(3).take(2).map(|word| word.parse().unwrap()).collect();
        assert_eq!(figures, [sum(|of| of.equal), sum(|of| of.compared)], "{line}");
    }
    assert!(table.held.iter().any(|of| of.policy == "linux-6.18") && !text.contains("linux-6.6 "), "{text}");
}

#[test]
fn a_policy_shows_every_rule_with_the_kernels_in_which_it_holds() {
    let text = stdout(&["policies", "show", "linux-6.1+yield"]);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} is missing from\n{text}"))
    };
    assert!(line("high ").ends_with("low watermark  from 5.14, before 6.7"), "{text}");
    assert!(line("yields ").ends_with("to waiters     none: a part"), "{text}");
    assert!(line("slab-order ").ends_with("fewer objects  before 6.7"), "{text}");
    let json = stdout(&["policies", "show", "linux-6.1+yield", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rules = document["rules"].as_array().unwrap();
    let yields = rules.iter().find(|rule| rule["name"] == "yields").unwrap();
    assert_eq!((&yields["part"], &yields["mechanisms"][0]), (&true.into(), &"page-lists".into()));
}

#[test]
fn kernels_that_nobody_has_read_are_refused_and_the_newest_is_named() {
    for name in ["linux-9.9", "linux-7.3"] {
        assert!(
            refusal(&["policies", "show", name]).trim_end().ends_with("the newest known here is linux-7.2")
        );
    }
    assert!(refusal(&["policies", "show", "linux-6.99"]).contains("linux-6.19 was the last 6.x"));
    assert!(refusal(&["policies", "show", "linux-5.25"]).contains("linux-5.19 was the last 5.x"));
}
