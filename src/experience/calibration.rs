//! Where the threshold of an embedder comes from: distances between seed postmortems of one mechanism and of different
//! ones, and the threshold that separates them best.
