//! Directories of all kinds.
