/** Two-level collectives: within each host through shared memory, between hosts through sockets. */
@NullMarked
package dev.tutti.gloo.hier;

import org.jspecify.annotations.NullMarked;
