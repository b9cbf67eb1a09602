/** What the ranks of a host share: descriptors, memory, and what they tell each other for it. */
@NullMarked
package dev.tutti.cuda.share;

import org.jspecify.annotations.NullMarked;
