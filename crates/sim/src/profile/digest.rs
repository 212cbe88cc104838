//! A digest of a profile. It tells two documents apart that have the same machine's name but different figures.

use core::fmt::Write;

use super::Profile;

/// FNV-1a in 64 bits: of what nobody forges, and the same on every machine.
pub fn digest(text: impl AsRef<[u8]>) -> String {
    let hash = text.as_ref().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Of all that a simulation takes from `profile`: its shape and the values of its figures. Names, sources and spreads do
/// not count.
pub(super) fn of(profile: &Profile) -> String {
    let mut text = super::write::shape_only(profile);
    for (spec, figure) in profile.figures() {
        // Writing to a String cannot fail. `{:?}` of a float is the shortest text that reads back as it.
        let _ = writeln!(text, "{}={:?}", spec.key, figure.value);
    }
    digest(text)
}

#[cfg(test)]
mod tests {
    use super::super::{Figure, FigureKind};
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }

    #[test]
    fn figures_and_shape_count_and_words_do_not() {
        let profile = Profile::load("xeon-8260").unwrap();
        let with = |title, value| {
            let figure = Figure::new(value, FigureKind::Estimated, "another source");
            profile.with("other", title, profile.shape().clone(), [("path.interrupt_ns", figure)]).unwrap()
        };
        let value = profile.value("path.interrupt_ns");
        assert_eq!(with("another title", value).digest(), profile.digest());
        assert_ne!(with("another title", value + 1.0).digest(), profile.digest());
        assert_ne!(Profile::load("xeon-8260-1n").unwrap().digest(), profile.digest());
        let read = Profile::parse("x", &profile.to_toml()).unwrap();
        assert_eq!(read.digest(), profile.digest(), "a file says all of it");
    }
}
