/**
 * A world of ranks in which a seed decides time, the order of threads, and faults, so that a run
 * can be repeated exactly.
 */
@NullMarked
package dev.tutti.fake.simulation;

import org.jspecify.annotations.NullMarked;
