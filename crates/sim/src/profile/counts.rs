//! What the kernel's paths execute, counted: `machines/paths/counts.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use toml::{Table, Value};

/// The kernel build that published machines are taken to have run: nobody says how theirs was built.
pub(super) const BUILD: &str = "linux-6.12-lean";

/// Instructions of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Counted {
    /// Of a call, its pages apart.
    pub(super) call: f64,
    /// Of each page of it; 0 where the count knows no pages.
    pub(super) page: f64,
}

/// What [`BUILD`] executes in the path called `name`.
///
/// # Panics
/// If nobody counted it.
pub(super) fn of(name: &str) -> Counted {
    static ALL: OnceLock<BTreeMap<String, Counted>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let text = include_str!("../../../../machines/paths/counts.toml");
        let table: Table = text.parse().expect("the file that comes along is TOML");
        let paths = table.get("path").and_then(Value::as_array).expect("it has paths");
        paths.iter().filter_map(entry).collect()
    });
    *all.get(name).unwrap_or_else(|| panic!("{name} was not counted in {BUILD}"))
}

/// A path's name and count; `None` if it was not counted in [`BUILD`].
fn entry(path: &Value) -> Option<(String, Counted)> {
    let figures = path.get("instructions")?.get(BUILD)?.as_array()?;
    let figure = |place: usize| figures.get(place).and_then(number);
    let counted = Counted { call: figure(0)?, page: figure(1).unwrap_or(0.0) };
    Some((path.get("name")?.as_str()?.to_owned(), counted))
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}
