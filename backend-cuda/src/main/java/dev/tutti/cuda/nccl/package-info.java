/**
 * The port to NCCL, and its adapter to the {@code libnccl.so.2} on this machine. Nothing is loaded
 * before it is requested.
 */
@NullMarked
package dev.tutti.cuda.nccl;

import org.jspecify.annotations.NullMarked;
