//! Tables as comma-separated values (RFC 4180, lines ended by a newline): one header, a line for each row, for spreadsheets and
//! scripts. Columns are JSON's keys; those of objects within a row are joined by dots, lists by spaces.

use lab::measurements::{Document, Tune, means};
use serde_json::{Map, Value, json};

/// A document's table: rows beside published ones of experiments and of `validate`, causes of `why`, settings of `tune`, the best first,
/// else the means of every figure.
pub fn document(document: &Document) -> String {
    let rows = |rows: Value| match rows {
        Value::Array(rows) => table(&rows),
        _ => String::new(),
    };
    // Measurements serialise: their maps have names for keys.
    let value = |of: Result<Value, serde_json::Error>| of.unwrap_or_default();
    if let Some(why) = &document.why {
        let goals = why.goals.iter().flat_map(|goal| {
            goal.causes.iter().map(|cause| {
                let mut row = value(serde_json::to_value(cause));
                row["metric"] = goal.metric.clone().into();
                row["unit"] = goal.unit.clone().into();
                row
            })
        });
        return table(&goals.collect::<Vec<_>>());
    }
    if !document.tune.is_empty() {
        return table(&document.tune.iter().flat_map(settings).collect::<Vec<_>>());
    }
    if let Some(validated) = document.validated.first() {
        return rows(value(serde_json::to_value(&validated.rows)));
    }
    if !document.experiments.is_empty() {
        return rows(value(serde_json::to_value(&document.rows)));
    }
    let known = if document.means.is_empty() { means(&document.runs) } else { document.means.clone() };
    rows(value(serde_json::to_value(known)))
}

/// The settings that a search came to, each with its goals' means and changes.
fn settings(tune: &Tune) -> impl Iterator<Item = Value> {
    (1..).zip(&tune.ranked).map(|(rank, candidate)| {
        let set: Vec<String> =
            candidate.knobs.iter().map(|set| format!("{}={}", set.knob, set.value)).collect();
        let mut row =
            json!({ "machine": tune.machine, "rank": rank, "setting": set, "seeds": candidate.seeds });
        let measured = tune.goals.iter().zip(candidate.means.iter().zip(&candidate.changes));
        for (goal, (mean, change)) in measured {
            row[&goal.metric] = json!({ "mean": mean, "change": change.mean });
        }
        row
    })
}

/// The first list of `output`, an object as `--json` prints it.
pub fn first_list(output: &Value) -> String {
    let mut lists = output.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_array);
    lists.next().map_or_else(String::new, |rows| table(rows))
}

/// Objects as rows. A column stands where the first row that has it puts it.
fn table(rows: &[Value]) -> String {
    let flat: Vec<Vec<(String, String)>> = rows.iter().map(|row| flat("", row)).collect();
    let mut columns: Vec<&str> = vec![];
    for (name, _) in flat.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    let mut out = line(columns.iter().copied());
    for row in &flat {
        let cell =
            |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, cell)| cell.as_str());
        out += &line(columns.iter().map(cell));
    }
    out
}

/// A row's cells, by column.
fn flat(name: &str, value: &Value) -> Vec<(String, String)> {
    let join = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(map) => map.iter().flat_map(|(key, value)| flat(&join(key), value)).collect(),
        Value::Array(values) => {
            let cells: Vec<String> = values.iter().map(plain).collect();
            vec![(name.to_owned(), cells.join(" "))]
        }
        other => vec![(name.to_owned(), plain(other))],
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_have_one_header_and_awkward_cells_are_quoted() {
        let output = json!({
            "schema": 1,
            "knobs": [
                { "a": "one", "b": { "x": 1.5, "y": null } },
                { "a": "two, \"three\"", "list": [1, 2], "b": { "x": 2 } },
            ],
        });
        assert_eq!(first_list(&output), "a,b.x,b.y,list\none,1.5,,\n\"two, \"\"three\"\"\",2,,1 2\n");
        assert_eq!(first_list(&json!({ "schema": 1 })), "");
        assert_eq!(document(&Document::default()), "");
    }
}
