//! The measurements come out complete. How long anything took is not looked at.

use freehold_host::bench::{Case, Others, Plan, Spread, run};

#[test]
fn every_case_of_every_source_has_a_row() {
    let plan = Plan { pages: 1024, rounds: 2, ..Plan::up_to(3) };
    assert_eq!(plan.threads, [1, 2, 3]);
    let mut shown = 0;
    let rows = run(&plan, |_| shown += 1).unwrap();
    assert_eq!(rows.len(), 3 * 3 * 3 * Case::ALL.len());
    assert_eq!(shown, rows.len());
    for row in &rows {
        assert!(row.blocks > 0 && row.ns.min > 0.0, "{row}");
        assert!(row.ns.min <= row.ns.median && row.ns.median <= row.ns.max, "{row}");
    }
    let ours = run(&Plan { others: Others::Skipped, ..plan }, |_| ()).unwrap();
    assert!(ours.iter().all(|row| row.source == "freehold"));
}

#[test]
fn a_spread_sorts_its_rounds() {
    assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
    assert_eq!(Spread::of(&[]), Spread::default());
}
