/** A group of ranks as users hold it: set-up, the checks of arguments, calls, and the end. */
@NullMarked
package dev.tutti.runtime.group;

import org.jspecify.annotations.NullMarked;
