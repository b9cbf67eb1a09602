/** Signals that processes get from outside. */
@NullMarked
package dev.tutti.runtime.signal;

import org.jspecify.annotations.NullMarked;
