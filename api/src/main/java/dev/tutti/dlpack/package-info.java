/** Tensors of other libraries and for them, by DLPack. */
@NullMarked
package dev.tutti.dlpack;

import org.jspecify.annotations.NullMarked;
