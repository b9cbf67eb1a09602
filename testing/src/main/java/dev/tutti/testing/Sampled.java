package dev.tutti.testing;

import static java.lang.annotation.ElementType.TYPE;
import static java.lang.annotation.RetentionPolicy.RUNTIME;

import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Marks a test class that repeats a contract in another setting: the fast tier runs some of its
 * tests, drawn by their names, and the full tier runs all of them.
 *
 * @see TestTier
 */
@Target(TYPE)
@Retention(RUNTIME)
@Inherited
@ExtendWith(SampledExtension.class)
public @interface Sampled {}
