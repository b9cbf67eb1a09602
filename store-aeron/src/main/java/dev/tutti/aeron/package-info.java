/**
 * The store over Aeron, in shared memory and over UDP: its client and its server.
 *
 * <p>Begin with {@link dev.tutti.aeron.AeronStore}, which ranks open by {@code aeron://}, and
 * {@link dev.tutti.aeron.AeronStoreServer}. They require {@code --add-exports
 * java.base/jdk.internal.misc=ALL-UNNAMED}.
 *
 * {@snippet file="StoreSnippetsTest.java" region="aeron"}
 *
 * <p>All packages below use the following terms. A <em>session</em> is what a process has with one
 * server: two streams of messages, and a <em>control connection</em> over TCP, on which the two
 * agree on the session and notice the end of each other. A message has a <em>body</em>, which is
 * sent in <em>frames</em>. A <em>call</em> is a request that waits for its reply, and a
 * <em>caller</em> is the client that made it, as the server has it. A <em>bell</em> is a word in
 * shared memory by which a sleeping thread is woken. The <em>lease</em> is how long a silent peer
 * counts as alive.
 */
@NullMarked
package dev.tutti.aeron;

import org.jspecify.annotations.NullMarked;
