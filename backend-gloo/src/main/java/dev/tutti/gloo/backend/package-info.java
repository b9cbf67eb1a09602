/** What runs the operations of a Gloo group, and the ways that all of them share. */
@NullMarked
package dev.tutti.gloo.backend;

import org.jspecify.annotations.NullMarked;
