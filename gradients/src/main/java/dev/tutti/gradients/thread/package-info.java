/** Thread handling that this module's packages share. */
@NullMarked
package dev.tutti.gradients.thread;

import org.jspecify.annotations.NullMarked;
