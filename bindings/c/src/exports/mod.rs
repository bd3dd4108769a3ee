//! The functions of the header, by what they are about.

pub mod agent;
pub mod backend;
pub mod numbers;
pub mod transfer;
pub mod warning;
