/** What backends share that work on CPU tensors. */
@NullMarked
package dev.tutti.cpu;

import org.jspecify.annotations.NullMarked;
