/**
 * Holds the stores that need nothing but the JDK: in memory, in a file, and over PyTorch's TCPStore
 * protocol.
 */
@NullMarked
package dev.tutti.store;

import org.jspecify.annotations.NullMarked;
