/** The steps of summing sparse tensors. */
@NullMarked
package dev.tutti.cpu.sparse;

import org.jspecify.annotations.NullMarked;
