/**
 * The store over Aeron, in shared memory and over UDP: its client, its server, and a cluster of
 * three that survives the loss of a member.
 *
 * <p>Begin with {@link dev.tutti.aeron.AeronStore}, which ranks open by {@code aeron://}, and
 * {@link dev.tutti.aeron.AeronStoreServer}; {@link dev.tutti.aeron.AeronClusterServer} is a member
 * of a cluster. They require {@code --add-exports java.base/jdk.internal.misc=ALL-UNNAMED}.
 *
 * {@snippet file="StoreSnippetsTest.java" region="aeron"}
 */
@NullMarked
package dev.tutti.aeron;

import org.jspecify.annotations.NullMarked;
