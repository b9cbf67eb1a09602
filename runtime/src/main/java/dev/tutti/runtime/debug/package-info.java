/** The debug server of a rank, which shows over HTTP where the rank stands. */
@NullMarked
package dev.tutti.runtime.debug;

import org.jspecify.annotations.NullMarked;
