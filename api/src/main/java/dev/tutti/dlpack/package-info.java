/**
 * The exchange of tensors with other libraries through DLPack, without a copy.
 *
 * <p>Begin with {@link dev.tutti.dlpack.Dlpack}, which imports a managed tensor from a library and
 * exports one to it.
 *
 * {@snippet file="GroupSnippetsTest.java" region="dlpack"}
 */
@NullMarked
package dev.tutti.dlpack;

import org.jspecify.annotations.NullMarked;
