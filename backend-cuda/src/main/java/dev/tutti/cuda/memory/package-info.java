/** Device memory and page-locked host memory, cached for reuse. */
@NullMarked
package dev.tutti.cuda.memory;

import org.jspecify.annotations.NullMarked;
