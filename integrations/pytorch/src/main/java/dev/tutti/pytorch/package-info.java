/**
 * Data-parallel training with the Java bindings of PyTorch, and zero-copy conversion between
 * tensors of both.
 *
 * <p>Begin with {@link dev.tutti.pytorch.DataParallel}; {@link dev.tutti.pytorch.Tensors} turns
 * tensors of one side into those of the other.
 *
 * {@snippet file="dev/tutti/pytorch/PytorchSnippets.java" region="train"}
 */
@NullMarked
package dev.tutti.pytorch;

import org.jspecify.annotations.NullMarked;
