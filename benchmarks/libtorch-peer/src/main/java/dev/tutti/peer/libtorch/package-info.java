/**
 * Processes driven by libtorch 2.10 that act as counterparts to Tutti in interoperability tests and
 * in benchmarks.
 *
 * <p>Nothing here depends on Tutti. The classes fall into two groups. {@link
 * dev.tutti.peer.libtorch.PeerProcess}, {@link dev.tutti.peer.libtorch.PeerArguments}, {@link
 * dev.tutti.peer.libtorch.PeerData} and {@link dev.tutti.peer.libtorch.LibtorchClasspath} are for
 * the process that starts a peer and load nothing native; the classes with a {@code main} run
 * inside the peer.
 */
@NullMarked
package dev.tutti.peer.libtorch;

import org.jspecify.annotations.NullMarked;
