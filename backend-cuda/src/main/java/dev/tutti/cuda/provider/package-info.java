/** What the module offers to groups: its backends and their sessions. */
@NullMarked
package dev.tutti.cuda.provider;

import org.jspecify.annotations.NullMarked;
