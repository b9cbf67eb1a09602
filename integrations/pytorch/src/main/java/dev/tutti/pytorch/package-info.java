/**
 * Data-parallel training by the Java bindings of PyTorch, and tensors of both without copies.
 *
 * <p>Begin with {@link dev.tutti.pytorch.DataParallel}; {@link dev.tutti.pytorch.Tensors} makes
 * tensors of one side those of the other.
 *
 * {@snippet file="dev/tutti/pytorch/PytorchSnippets.java" region="train"}
 */
@NullMarked
package dev.tutti.pytorch;

import org.jspecify.annotations.NullMarked;
