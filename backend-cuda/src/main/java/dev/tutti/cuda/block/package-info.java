/** Stream blocks: kernels that hold a stream until the host releases it. */
@NullMarked
package dev.tutti.cuda.block;

import org.jspecify.annotations.NullMarked;
