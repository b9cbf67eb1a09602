/** Holds optimizers whose state is divided among the ranks. */
@NullMarked
package dev.tutti.gradients.optimizer;

import org.jspecify.annotations.NullMarked;
