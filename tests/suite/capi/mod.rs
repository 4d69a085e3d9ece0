//! The interface to C, called as C does: what it gives is what the library gives, and what is wrong is refused.

pub mod calls;
mod header;
mod operators;
mod refusals;
