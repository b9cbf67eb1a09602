/**
 * The stores that need nothing but the JDK: in memory, in a file, and over PyTorch's TCPStore
 * protocol.
 *
 * <p>Begin with {@link dev.tutti.store.HashStore} for the threads of a process, {@link
 * dev.tutti.store.tcp.TcpStore} for processes, and {@link dev.tutti.store.file.FileStore} for
 * processes that share a file system. {@link dev.tutti.store.PrefixStore} partitions any store.
 *
 * {@snippet file="StoreSnippetsTest.java" region="hash"}
 */
@NullMarked
package dev.tutti.store;

import org.jspecify.annotations.NullMarked;
