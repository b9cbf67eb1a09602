/**
 * Holds JUnit support for distributed code, and the contract suites of backends, stores and stream
 * blocks. Suites may grow in a minor release.
 */
@NullMarked
package dev.tutti.testing;

import org.jspecify.annotations.NullMarked;
