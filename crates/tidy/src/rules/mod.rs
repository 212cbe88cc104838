//! The rules.

mod arrows;
mod citations;
mod files;
mod functions;
mod items;
mod pages;
mod paths;
mod published;
mod rooms;
mod shape;
mod source;
mod two_files;
mod walks;

pub use arrows::{arrows, core_alone, who_parses, who_prints};
pub use citations::citations_lead_somewhere;
pub use files::{docs_name_what_is, known_files};
pub use functions::functions_are_short;
pub use items::docs_name_items;
pub use pages::rules_have_pages;
pub use paths::no_machine_paths;
pub use published::figures_are_published;
pub use rooms::{rooms, types_are_thin};
pub use shape::{file_length, median_length, module_opening};
pub use source::{finished_code, oldest_rust, safety_comment};
pub use two_files::two_files;
pub use walks::walks_lead_through;

use crate::{Finding, Tree};

/// A rule by the name that CONTRIBUTING.md gives it.
pub type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// Every rule.
pub const ALL: [Rule; 22] = [
    ("file-length", file_length),
    ("median-length", median_length),
    ("module-opening", module_opening),
    ("functions-are-short", functions_are_short),
    ("two-files", two_files),
    ("safety-comment", safety_comment),
    ("finished-code", finished_code),
    ("oldest-rust", oldest_rust),
    ("no-machine-paths", no_machine_paths),
    ("known-files", known_files),
    ("docs-name-what-is", docs_name_what_is),
    ("docs-name-items", docs_name_items),
    ("citations-lead-somewhere", citations_lead_somewhere),
    ("figures-are-published", figures_are_published),
    ("walks-lead-through", walks_lead_through),
    ("arrows", arrows),
    ("rooms", rooms),
    ("types-are-thin", types_are_thin),
    ("core-alone", core_alone),
    ("who-parses", who_parses),
    ("who-prints", who_prints),
    ("rules-have-pages", rules_have_pages),
];
