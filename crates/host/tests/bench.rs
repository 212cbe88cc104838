//! The measurements come out complete. How long anything took is not looked at.

use freehold_host::bench::objects::{self, ObjectCase, ObjectPlan};
use freehold_host::bench::{BenchPlan, Case, OtherAllocators, RoundSpread, run};

#[test]
fn every_case_of_every_source_has_a_row() {
    let plan = BenchPlan { pages: 1024, rounds: 2, ..BenchPlan::up_to(3) };
    assert_eq!(plan.threads, [1, 2, 3]);
    let mut shown = 0;
    let rows = run(&plan, |_| shown += 1).unwrap();
    assert_eq!(rows.len(), 3 * 3 * 3 * Case::ALL.len());
    assert_eq!(shown, rows.len());
    for row in &rows {
        assert!(row.blocks > 0 && row.ns.min > 0.0, "{row}");
        assert!(row.ns.min <= row.ns.median && row.ns.median <= row.ns.max, "{row}");
    }
    let ours = run(&BenchPlan { others: OtherAllocators::Skipped, ..plan }, |_| ()).unwrap();
    assert!(ours.iter().all(|row| row.source == "freehold"));
}

#[test]
fn every_case_of_objects_has_a_row_for_every_source() {
    let plan = ObjectPlan { objects: 500, rounds: 2, ..ObjectPlan::up_to(2) };
    let rows = objects::run(&plan, |_| ()).unwrap();
    // 6.18 is there twice: with sheaves too.
    let sources = plan.policies.len() + 2;
    for case in ObjectCase::ALL {
        let of_case: Vec<_> = rows.iter().filter(|row| row.case == case).collect();
        let wanted = if case == ObjectCase::HandOver { sources + 1 } else { 2 * sources };
        assert_eq!(of_case.len(), wanted, "{case:?}");
        for row in of_case {
            assert!(row.ns.min > 0.0 && row.ns.min <= row.ns.median && row.ns.median <= row.ns.max, "{row}");
            assert!(row.instructions.is_none_or(|count| count > 1.0), "{row}");
        }
    }
    let ours = objects::run(&ObjectPlan { others: OtherAllocators::Skipped, ..plan }, |_| ()).unwrap();
    assert!(ours.iter().all(|row| row.source != "malloc"));
}

#[test]
fn a_spread_sorts_its_rounds() {
    assert_eq!(RoundSpread::of(&[3.0, 1.0, 2.0]), RoundSpread { min: 1.0, median: 2.0, max: 3.0 });
    assert_eq!(RoundSpread::of(&[]), RoundSpread::default());
}
