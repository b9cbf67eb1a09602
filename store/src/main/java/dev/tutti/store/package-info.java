/**
 * Holds the stores that need nothing but the JDK: in memory, in a file, and over PyTorch's TCPStore
 * protocol.
 */
package dev.tutti.store;
