/** Binds a process group for programs that use Guice. */
@NullMarked
package dev.tutti.inject;

import org.jspecify.annotations.NullMarked;
