/** What the threads of this module have in common. */
@NullMarked
package dev.tutti.gradients.thread;

import org.jspecify.annotations.NullMarked;
