//! The JSON Schema of everything that `--json` prints. What runs measured is made of the types themselves; what commands list is
//! written down in `shapes`. docs/schema/freehold-1.json is this schema; tests hold it and every command's output against it.

mod shapes;

use lab::measurements::{Document, SCHEMA_VERSION};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::commands::apply::{Report, RevertedSettings};

/// The schema as a document of its own.
pub(crate) fn schema() -> Value {
    let mut all = Map::new();
    add::<Document>(&mut all, "measurements", MEASUREMENTS);
    add::<shapes::Conformed>(&mut all, "conformed", "conform: what was compared with stock kernels");
    add::<shapes::Traced>(
        &mut all,
        "traced",
        "conform --trace: batches of reclaim and steps of compaction of scenes",
    );
    add::<Report>(
        &mut all,
        "settings",
        "apply: what is written to this machine, what was watched, what was put back",
    );
    add::<RevertedSettings>(&mut all, "reverted", "apply --revert: settings that were taken back");
    for shape in shapes::all() {
        all.insert(shape.name.to_owned(), versioned(shape.object, shape.about));
    }
    for definition in all.values_mut() {
        close(definition);
    }
    let kinds: Vec<Value> = KINDS.iter().map(|kind| json!({ "$ref": format!("#/$defs/{kind}") })).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("What freehold prints with --json, version {SCHEMA_VERSION}"),
        "description": ABOUT,
        "oneOf": kinds,
        "$defs": all,
    })
}

const ABOUT: &str = "Every output is one object; `schema` is the version. A version gains keys, and loses none: readers pass over \
                     keys that they do not know. Times are in ns, memory in pages of 4 KiB unless a key says otherwise; null is a \
                     figure that there is not.";

const MEASUREMENTS: &str = "try, replay, why, tune, lab run, lab all, validate, compare, bench contention: everything that was measured";

/// What commands print: definitions that an output may be.
pub(crate) const KINDS: [&str; 17] = [
    "measurements",
    "conformed",
    "traced",
    "inspection",
    "recorded",
    "imported",
    "heat",
    "machines",
    "zonelists",
    "knobs",
    "policies",
    "policy",
    "experiments",
    "metrics",
    "operations",
    "settings",
    "reverted",
];

/// Adds the schema of `T` and of all that it is made of.
fn add<T: JsonSchema>(all: &mut Map<String, Value>, name: &str, about: &str) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut made = settings.into_generator().into_root_schema_for::<T>().to_value();
    let Some(root) = made.as_object_mut() else { return };
    root.remove("$schema");
    root.remove("title");
    if let Some(Value::Object(parts)) = root.remove("$defs") {
        all.extend(parts);
    }
    all.insert(name.to_owned(), versioned(made, about));
}

/// With the version that every output bears, and what it is.
fn versioned(mut object: Value, about: &str) -> Value {
    object["description"] = json!(about);
    object["properties"]["schema"] =
        json!({ "const": SCHEMA_VERSION, "description": "the version of this schema" });
    match object["required"].as_array_mut() {
        Some(required) => required.insert(0, json!("schema")),
        None => object["required"] = json!(["schema"]),
    }
    object
}

/// Objects that have named keys have no others: an output with a key that is not written down does not fit.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}
