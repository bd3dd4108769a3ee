//! Where things stand in the files that we write and read.
//!
//! [`image`] is ours. It starts with NIXL's header and its version 1 records, so that a stock reader of
//! that release opens it, and goes on with an extension that such a reader never looks at.
//! [`nixl`] is what NIXL itself writes, release by release.

pub mod image;
pub mod nixl;
pub mod parts;
