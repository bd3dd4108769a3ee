//! Telering for C.
