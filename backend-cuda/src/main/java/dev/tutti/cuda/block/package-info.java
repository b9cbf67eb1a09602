/** Stream blocks: kernels that hold a stream until the host lets it go on. */
@NullMarked
package dev.tutti.cuda.block;

import org.jspecify.annotations.NullMarked;
