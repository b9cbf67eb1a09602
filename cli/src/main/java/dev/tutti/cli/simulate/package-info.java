/** Estimates of the time of operations on hosts that need not exist, by pure functions. */
package dev.tutti.cli.simulate;
