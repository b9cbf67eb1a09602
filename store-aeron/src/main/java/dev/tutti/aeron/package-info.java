/**
 * The store over Aeron, in shared memory and over UDP: its client and its server.
 *
 * <p>Begin with {@link dev.tutti.aeron.AeronStore}, which ranks open by {@code aeron://}, and
 * {@link dev.tutti.aeron.AeronStoreServer}. They require {@code --add-exports
 * java.base/jdk.internal.misc=ALL-UNNAMED}.
 *
 * {@snippet file="StoreSnippetsTest.java" region="aeron"}
 */
@NullMarked
package dev.tutti.aeron;

import org.jspecify.annotations.NullMarked;
