//! Which rules are in force, as data: what a kernel version does by each mechanism (`policy`, with the parts that no version
//! has), what the postings of kmmscand do (`revision`), and what an administrator set (`knobs`). Nothing here acts on them; the
//! rooms read them where they act.

pub mod knobs;
pub mod policy;
pub(crate) mod revision;
