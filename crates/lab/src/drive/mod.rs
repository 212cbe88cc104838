//! What every simulation has in common, a replay's and a scene's.

pub(crate) mod figures;
