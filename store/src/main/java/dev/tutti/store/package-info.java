/**
 * The stores that need nothing but the JDK: in memory, in a file, and over PyTorch's TCPStore
 * protocol.
 *
 * <p>Begin with {@link dev.tutti.store.HashStore} for the threads of a process, {@link
 * dev.tutti.store.tcp.TcpStore} for processes, and {@link dev.tutti.store.file.FileStore} for
 * processes that share a file system. {@link dev.tutti.store.PrefixStore} partitions any store.
 *
 * {@snippet file="StoreSnippetsTest.java" region="hash"}
 *
 * <p>All packages of the module use the following terms. A <em>handle</em> is an object through
 * which a thread uses a store; {@code duplicate} makes another one. A <em>client</em> is one
 * connection of a handle as the server has it. A <em>waiter</em> is a call that waits for keys. A
 * <em>dialect</em> is how a client uses a server: with Tutti's own queries, or without them.
 */
@NullMarked
package dev.tutti.store;

import org.jspecify.annotations.NullMarked;
