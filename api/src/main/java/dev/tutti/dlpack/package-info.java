/**
 * Exchanges tensors with other libraries by DLPack, without a copy.
 *
 * <p>Begin with {@link dev.tutti.dlpack.Dlpack}: it takes a managed tensor that a library made, and
 * gives one to a library.
 *
 * {@snippet file="GroupSnippetsTest.java" region="dlpack"}
 */
@NullMarked
package dev.tutti.dlpack;

import org.jspecify.annotations.NullMarked;
