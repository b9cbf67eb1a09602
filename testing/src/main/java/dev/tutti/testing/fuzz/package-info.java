/** Runs random programs on a backend and compares all results. */
@NullMarked
package dev.tutti.testing.fuzz;

import org.jspecify.annotations.NullMarked;
