//! The route that is sold, over HTTP: sales, refusals, unknown outcomes, and the order of the checks.

mod admission;
mod broadcast;
mod checks;
mod crash;
mod faults;
mod figures;
mod headers;
mod interleavings;
mod landing;
mod outcomes;
mod permit;
mod pool;
mod presence;
mod purchase;
mod race;
mod refusals;
mod replay;
mod sale;
