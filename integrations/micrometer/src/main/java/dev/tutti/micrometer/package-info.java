/**
 * Metrics of process groups for Micrometer.
 *
 * <p>Begin with {@link dev.tutti.micrometer.TuttiMetrics}:
 *
 * {@snippet file="dev/tutti/micrometer/MicrometerSnippets.java" region="bind"}
 */
@NullMarked
package dev.tutti.micrometer;

import org.jspecify.annotations.NullMarked;
