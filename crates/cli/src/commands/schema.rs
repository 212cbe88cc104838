//! `freehold schema`: the JSON Schema of every output.

use crate::common::{CommandVerdict, Failure, print};
use crate::schema::schema;

pub(crate) fn run() -> Result<CommandVerdict, Failure> {
    print(&(serde_json::to_string_pretty(&schema()).map_err(Failure::of)? + "\n"))?;
    Ok(CommandVerdict::Fine)
}
