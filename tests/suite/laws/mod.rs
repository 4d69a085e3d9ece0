//! What physics demands, whatever the numbers are.

mod copies;
mod covariance;
mod domain_wall;
pub mod doublet;
mod dynamics;
mod force;
mod hasenbusch;
mod multigrid;
mod parts;
mod rhmc;
mod rooted;
mod smd;
mod smearing;
mod spectrum;
mod stout;
mod tuning;
mod wall_weights;
mod walls;
