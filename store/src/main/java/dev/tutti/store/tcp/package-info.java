/**
 * The store over TCP: client and server of the protocol of PyTorch's TCPStore.
 *
 * <p>Begin with {@link dev.tutti.store.tcp.TcpStore}; {@link
 * dev.tutti.store.tcp.TcpStoreOptions#withServer} makes it serve as well. {@link
 * dev.tutti.store.tcp.TcpStoreServer} is the server alone.
 *
 * {@snippet file="StoreSnippetsTest.java" region="tcp"}
 */
@NullMarked
package dev.tutti.store.tcp;

import org.jspecify.annotations.NullMarked;
