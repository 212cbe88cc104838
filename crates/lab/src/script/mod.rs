//! The language of small programs that stress memory management, an operation a line: `map`, `touch`, `readfile`, `fork`. Scenes, which ran
//! on stock kernels, are written in it (`conform`), and so are workloads of experiments (`workloads/script`).
//!
//! `program` and `words` read lines as the program that ran scenes did, which passed over what it did not know. `strict` reads the same
//! for experiments: there a mistake is an error, and there are a few operations more, for time. `names` and `draws` are what a process has
//! while it runs: regions and files by name, and generators of random numbers.

pub(crate) mod draws;
pub(crate) mod meanings;
pub(crate) mod names;
pub(crate) mod program;
pub(crate) mod strict;
pub(crate) mod words;
