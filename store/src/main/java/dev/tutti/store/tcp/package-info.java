/** The store over TCP: client and server of the protocol of PyTorch's TCPStore. */
@NullMarked
package dev.tutti.store.tcp;

import org.jspecify.annotations.NullMarked;
