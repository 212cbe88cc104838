//! What `freehold validate` prints, for fixed figures.

use freehold_report::{Style, validate};
use lab::measurements::{Account, Document, Role, Row};

fn row(variant: &str, (metric, unit): (&str, &str), published: f64, simulated: f64) -> Row {
    Row {
        experiment: "validate".into(),
        variant: variant.into(),
        metric: metric.into(),
        unit: unit.into(),
        published,
        simulated,
        stddev: if metric.starts_with("trace.") { 0.0 } else { simulated / 50.0 },
        error: simulated / published - 1.0,
        role: Role::Predicted,
        source: "this kernel (6.18.44), measured now".into(),
        ..Row::default()
    }
}

#[test]
fn the_kernel_and_the_simulator_side_by_side() {
    let mut document = Document::new("validate");
    for variant in ["private memory, 1 task", "shared memory, 2 tasks"] {
        document.rows.extend([
            row(variant, ("trace.refills", "count"), 294.0, 295.0),
            row(variant, ("trace.refilled_pages", "pages"), 201_178.0, 205_084.0),
            row(variant, ("trace.drained_pages", "pages"), 212_913.0, 203_291.0),
            row(variant, ("refill.hold_ns_per_page", "ns/page"), 46.6, 41.5),
            row(variant, ("drain.hold_ns_per_page", "ns/page"), 45.2, f64::NAN),
            row(variant, ("faults_per_second", "faults/s"), 1_069_502.0, 1_087_444.0),
        ]);
    }
    document.experiments = vec![Account {
        name: "validate".into(),
        title: "Linux 6.18.44 on this machine, and a profile probed just now".into(),
        about: "What was measured how. Load averages at the end: 13.24, 12.10, 9.75.".into(),
        ..Account::default()
    }];
    insta::assert_snapshot!(validate::text(Style::plain(), &document));
    assert_eq!(validate::text(Style::plain(), &Document::new("")), "");
}
