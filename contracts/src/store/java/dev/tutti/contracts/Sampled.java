package dev.tutti.contracts;

import static java.lang.annotation.ElementType.METHOD;
import static java.lang.annotation.ElementType.TYPE;
import static java.lang.annotation.RetentionPolicy.RUNTIME;

import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Marks tests of which the fast tier runs one in five, and the full tier all. On a class that
 * repeats a contract in another setting, the names of the class and its tests decide which; on a
 * parameterized test, the first invocation is drawn, the sixth and so on.
 *
 * @see TestTier
 */
@Target({TYPE, METHOD})
@Retention(RUNTIME)
@Inherited
@ExtendWith(SampledExtension.class)
public @interface Sampled {}
