//! Fractions in JSON. JSON has no infinity and no "not a number"; they are written as `null` and read back as NaN.

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a finite fraction as a number, any other as `null`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's `with` hands over a reference")]
pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.serialize_none() }
}

/// Reads a number, or `null` as NaN.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
