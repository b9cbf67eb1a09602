/** The steps of a sum of sparse tensors. */
@NullMarked
package dev.tutti.cpu.sparse;

import org.jspecify.annotations.NullMarked;
