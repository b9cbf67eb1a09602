/** Collectives among the ranks of one host through the memory that they share. */
@NullMarked
package dev.tutti.gloo.shm;

import org.jspecify.annotations.NullMarked;
