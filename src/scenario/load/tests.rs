//! Whole scenario files, loaded and refused.
