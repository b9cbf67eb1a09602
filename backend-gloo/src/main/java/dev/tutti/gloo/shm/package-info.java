/** What ranks of one host do through memory that they share. */
@NullMarked
package dev.tutti.gloo.shm;

import org.jspecify.annotations.NullMarked;
