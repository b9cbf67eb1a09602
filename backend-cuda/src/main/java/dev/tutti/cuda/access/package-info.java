/** The module's per-device resources, and access to what the public classes hide from users. */
@NullMarked
package dev.tutti.cuda.access;

import org.jspecify.annotations.NullMarked;
