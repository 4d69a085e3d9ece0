//! What GPUs of any driver share.
//!
//! - `tuning`: the block sizes that are tried
//! - `mapped`: sums that the GPU writes into host memory
//! - `cache`: compiled kernels on disk
//! - `usual`: the constants with which GPUs compile kernels most often

pub(super) mod cache;
pub(super) mod mapped;
pub(super) mod tuning;
mod usual;
