/** Binds a process group for programs that use Guice. */
@NullMarked
package dev.tutti.guice;

import org.jspecify.annotations.NullMarked;
