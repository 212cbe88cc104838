//! `freehold conform`.

use crate::args::{Conform, Global};
use crate::common::{Failure, Verdict};

pub(crate) fn run(_global: &Global, _options: &Conform) -> Result<Verdict, Failure> {
    Err(Failure("conform is on its way".into()))
}
