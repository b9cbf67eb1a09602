/** How the members of a job agree who continues: generations that shrink, grow and rejoin. */
@NullMarked
package dev.tutti.runtime.membership;

import org.jspecify.annotations.NullMarked;
