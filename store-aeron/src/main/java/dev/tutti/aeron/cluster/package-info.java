/**
 * The members of a cluster, which keep the store together, and the client's session with their
 * leader.
 */
@NullMarked
package dev.tutti.aeron.cluster;

import org.jspecify.annotations.NullMarked;
