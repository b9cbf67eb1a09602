/** The debug server of a rank, which shows where it stands by HTTP. */
@NullMarked
package dev.tutti.runtime.debug;

import org.jspecify.annotations.NullMarked;
