//! What commands print that list or inspect something, written down as schemas.

use lab::conform::{FileOutcome, TraceRow};
use schemars::JsonSchema;
use serde_json::{Value, json};

/// What `conform` prints.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is asked for")]
pub(super) struct Conformed {
    /// Each capture or trace.
    files: Vec<FileOutcome>,
}

/// What `conform --trace` prints.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is asked for")]
pub(super) struct Traced {
    /// Batches of reclaim, steps of compaction and marks of scenes, in order.
    trace: Vec<TraceRow>,
}

/// One output.
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) object: Value,
}

pub(super) fn all() -> Vec<Shape> {
    let shape = |name, about, object| Shape { name, about, object };
    vec![
        shape("inspection", "inspect: what is in a recording", inspection()),
        shape("recorded", "record: what was recorded; on stderr, for stdout is the command's", recorded()),
        shape("imported", "record --import: what was taken over", object(&[("events", count())])),
        shape("heat", "heat: how often a program's pages are accessed, by mapping", heat()),
        shape("machines", "machines list, show and probe: profiles, each figure with its source", machines()),
        shape("zonelists", "machines show --zonelists: which zones a request asks, by node", zonelists()),
        shape("knobs", "knobs list and show: what can be set", knobs()),
        shape(
            "policies",
            "policies list: kernels, and what of them was held against captures and traces",
            policies(),
        ),
        shape("policy", "policies show: the rules in force, and how sure each mechanism is", policy()),
        shape("experiments", "lab list: the experiments that come along", experiments()),
        shape("metrics", "lab metrics: what an experiment can measure", metrics()),
        shape(
            "operations",
            "bench: ns per operation on this machine; pages have an order, objects bytes",
            operations(),
        ),
    ]
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn truth() -> Value {
    json!({ "type": "boolean" })
}

/// Or `null`.
fn maybe(of: &Value) -> Value {
    json!({ "anyOf": [of, { "type": "null" }] })
}

fn list(of: &Value) -> Value {
    json!({ "type": "array", "items": of })
}

/// An object with all of these keys.
fn object(keys: &[(&str, Value)]) -> Value {
    with_optional(keys, &[])
}

/// The same, and some that may be missing.
fn with_optional(keys: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        keys.iter().chain(optional).map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    let required: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn all_of(names: &[&'static str], of: &Value) -> Vec<(&'static str, Value)> {
    names.iter().map(|name| (*name, of.clone())).collect()
}

fn inspection() -> Value {
    let balance = object(&all_of(
        &["allocated", "freed", "peak", "held", "unmatched_frees", "allocated_twice"],
        &count(),
    ));
    let mut task = vec![("name", text()), ("in_workload", truth())];
    let of_task = ["pid", "tid", "allocs", "alloc_pages", "frees", "free_pages", "faults", "runs", "run_ns"];
    task.extend(all_of(&of_task, &count()));
    let sizes = list(&json!({ "type": "array", "items": count(), "minItems": 2, "maxItems": 2 }));
    let runs = object(&[
        ("order", maybe(&count())),
        ("migratetype", maybe(&text())),
        ("count", count()),
        ("blocks", count()),
        ("sizes", sizes),
    ]);
    let mut cache = vec![("cache", text())];
    cache.extend(all_of(&["object_bytes", "allocs", "frees", "peak", "held", "allocated_twice"], &count()));
    let mut keys = all_of(&["source", "kernel", "cpu_model", "keep"], &text());
    keys.extend(all_of(&["masked", "truncated", "interrupted"], &truth()));
    keys.extend(all_of(&["cpus", "chunks", "bytes", "events", "first_ns", "last_ns"], &count()));
    keys.extend([
        ("command", list(&text())),
        ("damage", maybe(&json!({ "type": "object" }))),
        ("exit_status", maybe(&json!({ "type": "integer" }))),
        ("bytes_per_event", number()),
        ("cost_ns_per_event", maybe(&number())),
        ("kinds", list(&object(&[("kind", text()), ("count", count())]))),
        ("tasks", list(&object(&task))),
        ("allocations", list(&object(&[("order", count()), ("migratetype", text()), ("count", count())]))),
        ("refills", list(&runs)),
        ("drains", list(&runs)),
        ("pages", balance.clone()),
        ("caches", list(&object(&cache))),
        ("objects", balance),
        ("slab_pages", object(&all_of(&["allocations", "frees"], &count()))),
        ("losses", object(&all_of(&["lost", "occasions", "unreadable", "left_out"], &count()))),
    ]);
    object(&keys)
}

fn recorded() -> Value {
    let mut keys = all_of(
        &["events", "bytes", "lost", "skipped", "left_out", "unreadable", "tasks", "duration_ns"],
        &count(),
    );
    let mut cost = all_of(&["rounds", "own_ns", "held_ns_max", "accessed_pages", "bit_ns"], &count());
    cost.push(("by_page", truth()));
    keys.extend([
        ("via", text()),
        // Its steps are a recording's, docs/recording-format.md.
        ("sampled", maybe(&json!({ "type": "object" }))),
        ("accessed", maybe(&object(&cost))),
        ("cost_ns_per_event", maybe(&number())),
        ("exit_status", maybe(&json!({ "type": "integer" }))),
        ("interrupted", truth()),
    ]);
    object(&keys)
}

fn heat() -> Value {
    let mut region = all_of(&["mib", "within_100ms", "within_1s", "within_5s"], &number());
    region.extend([("name", text()), ("rounds", count())]);
    let region = object(&region);
    let mut keys = all_of(&["title", "source", "command", "process", "kernel", "cpu_model", "date"], &text());
    keys.extend(all_of(&["interval_s", "after_s", "cpu_s", "clear_ns", "look_ns"], &number()));
    keys.extend([
        ("rounds", count()),
        ("rounds_left_out", count()),
        ("flushed", truth()),
        ("huge_kib", count()),
        ("exit_status", maybe(&json!({ "type": "integer" }))),
        ("all", region.clone()),
        ("region", list(&region)),
    ]);
    object(&keys)
}

fn machines() -> Value {
    let mut spread = all_of(&["min", "p25", "p75", "max"], &number());
    spread.push(("samples", count()));
    let figure = object(&[
        ("value", number()),
        ("kind", text()),
        ("source", text()),
        ("spread", maybe(&object(&spread))),
    ]);
    let mut machine = all_of(&["name", "title", "digest"], &text());
    machine.extend(all_of(&["cpus", "nodes"], &count()));
    machine.push(("figures", json!({ "type": "object", "additionalProperties": figure })));
    object(&[("machines", list(&object(&machine)))])
}

fn zonelists() -> Value {
    let zone = json!({ "type": "array", "prefixItems": [count(), text()], "minItems": 2, "maxItems": 2 });
    let node = object(&[("node", count()), ("fallback", list(&count())), ("zones", list(&zone))]);
    let mut keys = all_of(&["machine", "policy", "order", "reason"], &text());
    keys.push(("nodes", list(&node)));
    object(&keys)
}

fn knobs() -> Value {
    let mut keys = all_of(&["name", "unit", "meaning", "stands_for"], &text());
    keys.extend(all_of(&["min", "max", "default"], &count()));
    keys.extend([("words", list(&text())), ("kernels", maybe(&text()))]);
    let knob = with_optional(&keys, &[("here", text()), ("to_set", list(&text()))]);
    object(&[("knobs", list(&knob))])
}

fn policies() -> Value {
    // `scene` is empty of captures and traces, which have no parts that are near.
    let mut held = all_of(&["policy", "check", "mechanism", "scene"], &text());
    held.extend(all_of(&["files", "compared", "equal"], &count()));
    held.extend(all_of(&["errors", "stayed"], &list(&number())));
    object(&[
        ("oldest", text()),
        ("newest", text()),
        ("held", list(&object(&held))),
        ("series", list(&object(&all_of(&["name", "kernel"], &text())))),
        ("parts", list(&object(&[("name", text()), ("meaning", text()), ("freehold", truth())]))),
    ])
}

fn policy() -> Value {
    let label = object(&all_of(&["label", "reason"], &text()));
    let of_mechanism = object(&[("counts", label.clone()), ("times", maybe(&label))]);
    let mut rule = all_of(&["name", "question", "answer"], &text());
    rule.extend(all_of(&["since", "before"], &maybe(&text())));
    rule.extend([("mechanisms", list(&text())), ("part", truth())]);
    object(&[
        ("name", text()),
        ("kernel", text()),
        ("labels", json!({ "type": "object", "additionalProperties": of_mechanism })),
        ("rules", list(&object(&rule))),
    ])
}

fn experiments() -> Value {
    let mut keys = all_of(&["name", "title", "about", "source"], &text());
    keys.extend(all_of(&["variants", "machines"], &list(&text())));
    keys.extend(all_of(&["fitted", "predicted", "derived"], &count()));
    object(&[("experiments", list(&object(&keys)))])
}

fn metrics() -> Value {
    object(&[("metrics", list(&object(&all_of(&["path", "unit", "meaning"], &text()))))])
}

fn operations() -> Value {
    let ns = object(&all_of(&["min", "median", "max"], &number()));
    let optional = [
        ("order", count()),
        ("blocks", count()),
        ("bytes", count()),
        ("objects", count()),
        ("instructions", maybe(&number())),
    ];
    let row =
        with_optional(&[("source", text()), ("case", text()), ("threads", count()), ("ns", ns)], &optional);
    object(&[("operations", list(&row))])
}
