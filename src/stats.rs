//! Statistics: pure functions over numbers. Scores come in as integer micro-points, so that sums, ties and variances are
//! exact; everything else is f64 on the scale 0 to 1.
