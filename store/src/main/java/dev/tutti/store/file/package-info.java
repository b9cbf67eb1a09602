/**
 * The store in a file that all ranks can open, in PyTorch's format.
 *
 * <p>Begin with {@link dev.tutti.store.file.FileStore}; ranks name it by {@code file://}.
 *
 * {@snippet file="StoreSnippetsTest.java" region="file"}
 */
@NullMarked
package dev.tutti.store.file;

import org.jspecify.annotations.NullMarked;
