/** What the module offers to groups: its backends, their settings and sessions. */
@NullMarked
package dev.tutti.cuda.provider;

import org.jspecify.annotations.NullMarked;
