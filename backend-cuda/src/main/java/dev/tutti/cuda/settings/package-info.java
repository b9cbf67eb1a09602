/** The settings of the CUDA backends. */
@NullMarked
package dev.tutti.cuda.settings;

import org.jspecify.annotations.NullMarked;
