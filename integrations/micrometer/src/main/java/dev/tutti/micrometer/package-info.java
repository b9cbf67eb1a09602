/** Metrics of process groups for Micrometer. */
@NullMarked
package dev.tutti.micrometer;

import org.jspecify.annotations.NullMarked;
