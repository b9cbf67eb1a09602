/** How the ranks of a group agree on its first failure, and which rank they blame for it. */
@NullMarked
package dev.tutti.runtime.failure;

import org.jspecify.annotations.NullMarked;
