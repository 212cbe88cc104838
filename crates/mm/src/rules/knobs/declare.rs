//! How the table of tunables is written.

/// Makes [`Knob`] and [`KNOBS`] of the same lines: variant, what holds where the line says nothing, what it says.
macro_rules! knobs {
    ($($knob:ident: $base:ident { name: $name:literal, $($field:ident: $value:expr,)* })*) => {
        /// A tunable.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Knob {
            $(#[doc = concat!("`", $name, "`")] $knob,)*
        }

        /// Every knob, in the order of [`Knob`]. `percpu_pagelist_high_fraction` and the scale of watermarks have their first
        /// kernels from docs/rules/page-lists.md#sizes and docs/published.md#weiner-2016; the other dates of `kernels` are
        /// from memory, unchecked.
        pub const KNOBS: [KnobSpec; [$(Knob::$knob),*].len()] =
            [$(KnobSpec { knob: Knob::$knob, name: $name, $($field: $value,)* ..$base }),*];
    };
}

pub(super) use knobs;
