//! What Python says in words of its own: settings as a dictionary, machines by name or as objects, lists where one is meant.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use sim::Profile;

use crate::error::failed;
use crate::machine::Machine;

/// `{"vm.swappiness": [60, 100]}`, or `["vm.swappiness=60,100"]`, as `--set` takes it.
pub(crate) fn settings(set: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(set) = set else { return Ok(vec![]) };
    let Ok(pairs) = set.cast::<PyDict>() else {
        return list(set, "settings: a dictionary or a list of KNOB=V[,V…]");
    };
    pairs
        .iter()
        .map(|(knob, values)| {
            let values: Vec<String> = many(&values)?.iter().map(value).collect::<PyResult<_>>()?;
            Ok(format!("{}={}", knob.extract::<String>()?, values.join(",")))
        })
        .collect()
}

/// A knob's value as it is written on a command line.
fn value(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(is) = value.cast::<PyBool>() {
        return Ok(u8::from(is.is_true()).to_string());
    }
    Ok(value.str()?.to_string())
}

/// Texts; one alone may stand for a list of it.
pub(crate) fn list(words: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<String>> {
    if words.is_none() {
        return Ok(vec![]);
    }
    let text = |word: &Bound<'_, PyAny>| {
        word.extract::<String>().map_err(|_| PyTypeError::new_err(format!("{what}, not {word}")))
    };
    many(words)?.iter().map(text).collect()
}

/// What is in a list or tuple; anything else is one.
pub(crate) fn many<'py>(of: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_one = of.is_instance_of::<PyString>() || of.is_instance_of::<PyDict>();
    match of.try_iter() {
        Ok(items) if !is_one => items.collect(),
        _ => Ok(vec![of.clone()]),
    }
}

/// Profiles: names, files, or [`Machine`]s. Two of one name would pass for repetitions.
pub(crate) fn machines(of: &Bound<'_, PyAny>) -> PyResult<Vec<Profile>> {
    let mut profiles: Vec<Profile> = vec![];
    for machine in many(of)? {
        let profile = match machine.cast::<Machine>() {
            Ok(machine) => machine.get().profile().clone(),
            Err(_) => named(&machine.extract::<String>().map_err(|_| {
                PyTypeError::new_err(format!("a machine is a name, a file or a Machine, not {machine}"))
            })?)?,
        };
        if profiles.iter().any(|other| other.name() == profile.name()) {
            return Err(failed(format!("machine {} is named twice", profile.name())));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// The profile called so, or in a file of that name.
pub(crate) fn named(name: &str) -> PyResult<Profile> {
    if name == "this" {
        return Err(failed(
            "`this` is measured by the command: freehold machines probe -o this.toml, then Machine(\"this.toml\")",
        ));
    }
    Profile::load(name).map_err(failed)
}
