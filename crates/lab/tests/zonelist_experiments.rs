//! The experiments of docs/published.md#gorman-2014 that come along, made small: what they say must stay within bands. In
//! full they are in docs/results.md.

mod small;

use freehold_lab::experiment::Experiment;
use mm::Nanos;
use small::{ran, value};
use toml::Value;

/// One start of the JVMs in place of six, hardly measured: where pages come from is what counts.
#[test]
fn zonelist_order_takes_the_published_part_from_dma32() {
    let mut experiment = Experiment::load("zonelist-order").unwrap_or_else(|error| panic!("{error}"));
    experiment.comparisons.clear();
    for variant in &mut experiment.variants {
        variant.setup.workload.insert("warehouses".into(), Value::Array(vec![Value::Integer(10)]));
        variant.setup.workload.insert("measure_ms".into(), Value::Integer(40));
        variant.figures.retain(|figure| !figure.metric.path().contains("warehouses"));
        for phase in &mut variant.phases {
            phase.length = Nanos(2_500_000_000);
        }
    }
    let document = ran(experiment);
    let share = value(&document, "node-order", "zone_percent.pgalloc_dma32");
    assert!((3.73..5.73).contains(&share), "published 4.73, simulated {share}");
    assert!(value(&document, "zone-order", "zone_percent.pgalloc_dma32") < 0.01);
    for variant in ["zone-order", "node-order"] {
        for counter in ["numa_miss", "pgscan_kswapd", "pgscan_direct"] {
            assert!(value(&document, variant, &format!("counters.{counter}")) < 0.5, "{variant} {counter}");
        }
        // All of the heap in huge pages: none fell back for want of one.
        assert!((value(&document, variant, "counters.thp_fault_alloc") - 9192.0).abs() < 0.5);
    }
}

#[test]
fn zonelist_start_shows_who_pays_for_zone_order() {
    let mut experiment = Experiment::load("zonelist-start").unwrap_or_else(|error| panic!("{error}"));
    let kept =
        ["zone-order-node0", "zone-order-node2", "node-order-node0", "freehold-node0", "freehold-node2"];
    experiment.variants.retain(|variant| kept.contains(&variant.name.as_str()));
    experiment.comparisons.clear();
    for variant in &mut experiment.variants {
        variant.setup.workload.insert("measure_ms".into(), Value::Integer(400));
        for phase in &mut variant.phases {
            phase.length = Nanos(3_500_000_000);
        }
    }
    let document = ran(experiment);
    let rate = |variant: &str| value(&document, variant, "mean.warehouses-10");
    let missed = |variant: &str| value(&document, variant, "counters.numa_miss");
    assert!(missed("zone-order-node0") > 1000.0, "the end of the heap comes from elsewhere");
    for variant in ["zone-order-node2", "node-order-node0", "freehold-node0", "freehold-node2"] {
        assert!(missed(variant) < 0.5, "{variant}: {}", missed(variant));
        let change = rate("zone-order-node0") / rate(variant) - 1.0;
        assert!((-0.08..-0.01).contains(&change), "{variant}: {change}");
    }
}
