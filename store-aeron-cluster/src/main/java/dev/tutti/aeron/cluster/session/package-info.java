/** A client's session with the leader of a cluster. */
@NullMarked
package dev.tutti.aeron.cluster.session;

import org.jspecify.annotations.NullMarked;
