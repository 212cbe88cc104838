//! Controllers on a ground that the tests make up ([`world`]): what they look at, what they want, and what it costs them.

mod balancing;
mod kmmscand;
mod mover;
mod properties;
mod regions;
mod seeker;
mod seeker_budget;
mod world;
