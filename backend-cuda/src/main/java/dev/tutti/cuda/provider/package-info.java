/** The backends that the module offers to groups, and their sessions. */
@NullMarked
package dev.tutti.cuda.provider;

import org.jspecify.annotations.NullMarked;
