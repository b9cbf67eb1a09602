/**
 * Binds a process group for programs that use Guice.
 *
 * <p>Begin with {@link dev.tutti.guice.TuttiModule}:
 *
 * {@snippet file="dev/tutti/guice/GuiceSnippets.java" region="inject"}
 */
@NullMarked
package dev.tutti.guice;

import org.jspecify.annotations.NullMarked;
