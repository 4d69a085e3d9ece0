//! What GPUs of any driver share.
//!
//! - `tuning`: the block sizes that are tried
//! - `mapped`: sums that the GPU writes into host memory
//! - `cache`: compiled kernels on disk
//! - `usual`: the constants with which GPUs compile kernels most often

pub mod cache;
pub mod mapped;
pub mod tuning;
mod usual;
