//! A workload's parameters: laid over each other, and read as the workload's own type. Which parameter is at fault is
//! found out from outside, for a tagged enum keeps no places.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::file::Parameters;
use crate::experiment::error::{ExperimentError, Place, with_nearest};

const KIND: &str = "kind";

/// `over` laid over `base`. Another `kind` replaces all of it: its parameters mean something else.
pub(super) fn overlaid(base: &Parameters, over: &Parameters) -> Parameters {
    if over.get(KIND).is_some_and(|kind| Some(kind) != base.get(KIND)) {
        return over.clone();
    }
    let mut both = base.clone();
    for (key, value) in &over.0 {
        // Removed first, for the key keeps its place otherwise.
        both.0.remove(key);
        both.0.insert(key.clone(), value.clone());
    }
    both
}

impl Parameters {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name.as_ref() == key).map(|(_, value)| value.as_ref())
    }

    /// As a table without places.
    pub(super) fn table(&self) -> Table {
        self.0.iter().map(|(key, value)| (key.as_ref().clone(), value.as_ref().clone())).collect()
    }

    /// Checks that they are a `T`.
    pub(super) fn check<T: DeserializeOwned>(&self, place: Place<'_>) -> Result<(), ExperimentError> {
        let Err(problem) = read::<T>(self.table()) else { return Ok(()) };
        let missing = missing::<T>(self.table());
        let told = if missing.len() > 1 {
            format!("missing fields {}", missing.join(", "))
        } else {
            with_nearest(&problem)
        };
        let culprit = self.0.iter().find(|(key, _)| is_culprit::<T>(&self.table(), key.as_ref(), &problem));
        Err(match (culprit, self.0.iter().next()) {
            (Some((key, _)), _) => place.error(&key.span(), format!("workload.{}: {told}", key.as_ref())),
            (None, Some((key, _))) => place.error(&key.span(), format!("workload: {told}")),
            (None, None) => ExperimentError::new(place.file, "workload is missing"),
        })
    }
}

/// A parameter is at fault if the message names it as one that does not exist, or if there is another message without it.
fn is_culprit<T: DeserializeOwned>(table: &Table, key: &str, problem: &str) -> bool {
    if problem.starts_with("missing field") {
        return false;
    }
    if problem.starts_with("unknown") && problem.contains(&format!("`{key}`,")) {
        return true;
    }
    if key == KIND {
        return problem.starts_with("unknown variant");
    }
    let mut without = table.clone();
    without.remove(key);
    read::<T>(without).map_or_else(|other| other != problem, |_| true)
}

/// All fields that `table` lacks. Whatever is wrong with a field that is there hides those that are not; and so does a
/// field of a table within, whose place the message does not tell.
fn missing<T: DeserializeOwned>(mut table: Table) -> Vec<String> {
    let mut fields: Vec<String> = vec![];
    let lacked = |problem: &str| Some(problem.strip_prefix("missing field `")?.split_once('`')?.0.to_owned());
    while let Some(field) = read::<T>(table.clone()).err().and_then(|problem| lacked(&problem)) {
        // Something stands in for it, of whatever type lets the next one be missed.
        let stands_in = |value: Value| {
            let mut filled = table.clone();
            filled.insert(field.clone(), value);
            let fits = match read::<T>(filled.clone()) {
                Ok(_) => true,
                Err(problem) => lacked(&problem).is_some_and(|next| next != field),
            };
            fits.then_some(filled)
        };
        let values = [Value::Integer(1), Value::String(String::new()), Value::Array(vec![])];
        fields.push(format!("`{field}`"));
        match values.into_iter().chain([Value::Float(1.0), Value::Boolean(true)]).find_map(stands_in) {
            Some(filled) => table = filled,
            None => break,
        }
    }
    fields
}

fn read<T: DeserializeOwned>(table: Table) -> Result<T, String> {
    Value::Table(table).try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
    #[allow(dead_code, reason = "only its shape is looked at")]
    enum Spec {
        Loop { processes: u32, size_mib: u64 },
        Nothing {},
    }

    fn parameters(text: &str) -> Parameters {
        toml::from_str(text).expect("a table")
    }

    fn problem(text: &str) -> String {
        let place = Place { file: "f.toml", text };
        parameters(text).check::<Spec>(place).expect_err(text).to_string()
    }

    #[test]
    fn the_parameter_at_fault_is_named_with_its_line() {
        let found = problem("kind = \"loop\"\nprocesses = 1\nsize_mib = \"x\"\n");
        assert!(found.starts_with("f.toml:3: workload.size_mib: invalid type: string"), "{found}");
        let found = problem("kind = \"loop\"\nprocesses = -1\nsize_mib = 1\n");
        assert!(found.starts_with("f.toml:2: workload.processes: invalid value"), "{found}");
        let found = problem("kind = \"loop\"\nprocesses = 1\nsize_mib = 1\nsize = 1\n");
        assert!(found.starts_with("f.toml:4: workload.size: unknown field"), "{found}");
        let found = problem("kind = \"lop\"\nprocesses = 1\n");
        assert!(found.starts_with("f.toml:1: workload.kind: unknown variant"), "{found}");
        let found = problem("kind = \"loop\"\nprocesses = 1\n");
        assert!(found.starts_with("f.toml:1: workload: missing field `size_mib`"), "{found}");
        let found = problem("kind = \"loop\"\n");
        assert!(found.ends_with("workload: missing fields `processes`, `size_mib`"), "{found}");
        assert_eq!(problem(""), "f.toml: workload is missing");
    }

    #[test]
    fn overlaid_parameters_keep_the_rest() {
        let base = parameters("kind = \"loop\"\nprocesses = 1\nsize_mib = 2\n");
        let both = overlaid(&base, &parameters("processes = 4\n"));
        assert_eq!(both.table().get("processes"), Some(&Value::Integer(4)));
        assert_eq!(both.table().get("size_mib"), Some(&Value::Integer(2)));
        assert!(both.check::<Spec>(Place { file: "f", text: "" }).is_ok());
        let other = overlaid(&base, &parameters("kind = \"nothing\"\n"));
        assert_eq!(other.table().len(), 1);
    }
}
