/** Estimates of the time of operations on hosts that need not exist, by pure functions. */
@NullMarked
package dev.tutti.cli.simulate;

import org.jspecify.annotations.NullMarked;
