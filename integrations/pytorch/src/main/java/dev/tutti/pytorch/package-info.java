/** Data-parallel training by the Java bindings of PyTorch, and tensors of both without copies. */
@NullMarked
package dev.tutti.pytorch;

import org.jspecify.annotations.NullMarked;
