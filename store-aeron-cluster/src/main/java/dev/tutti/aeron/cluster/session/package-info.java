/** A client's session with the leader of a cluster. */
package dev.tutti.aeron.cluster.session;
