/** Memory of devices and page-locked memory of the host, kept for use again. */
@NullMarked
package dev.tutti.cuda.memory;

import org.jspecify.annotations.NullMarked;
