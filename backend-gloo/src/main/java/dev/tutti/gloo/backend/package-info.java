/** The backends that run the operations of a Gloo group, and what they share. */
@NullMarked
package dev.tutti.gloo.backend;

import org.jspecify.annotations.NullMarked;
