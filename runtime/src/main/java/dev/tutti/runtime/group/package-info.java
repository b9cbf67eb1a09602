/** A group of ranks as users see it: set-up, argument checks, calls, and the end. */
@NullMarked
package dev.tutti.runtime.group;

import org.jspecify.annotations.NullMarked;
