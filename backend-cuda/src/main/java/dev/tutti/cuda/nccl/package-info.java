/**
 * The port to NCCL, and its adapter to whichever {@code libnccl.so.2} is on this machine. Nothing
 * loads before it is asked for.
 */
@NullMarked
package dev.tutti.cuda.nccl;

import org.jspecify.annotations.NullMarked;
