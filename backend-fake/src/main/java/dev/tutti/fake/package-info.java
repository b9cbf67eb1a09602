/**
 * Holds groups for tests: one that only pretends, one whose ranks are threads, and faults on
 * demand.
 */
@NullMarked
package dev.tutti.fake;

import org.jspecify.annotations.NullMarked;
