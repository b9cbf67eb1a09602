/** The debug server of a rank, which shows over HTTP where the rank stands. */
package dev.tutti.runtime.debug;
