/** The operations of a group: their order, states, deadlines and records. */
@NullMarked
package dev.tutti.runtime.operation;

import org.jspecify.annotations.NullMarked;
