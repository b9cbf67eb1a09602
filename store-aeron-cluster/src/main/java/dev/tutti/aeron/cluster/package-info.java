/**
 * The store that is replicated on Aeron Cluster: its client, and the members, of which three
 * survive the loss of one.
 *
 * <p>Ranks open an {@link dev.tutti.aeron.cluster.AeronClusterStore} by {@code aeron-cluster://};
 * an {@link dev.tutti.aeron.cluster.AeronClusterServer} is a member. Both require {@code
 * --add-exports java.base/jdk.internal.misc=ALL-UNNAMED}.
 */
@NullMarked
package dev.tutti.aeron.cluster;

import org.jspecify.annotations.NullMarked;
