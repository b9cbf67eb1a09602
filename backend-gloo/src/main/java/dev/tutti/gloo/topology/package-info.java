/** The grouping of ranks by host, and the messages through which ranks discover it. */
@NullMarked
package dev.tutti.gloo.topology;

import org.jspecify.annotations.NullMarked;
