/**
 * What launchers pass a process about its rank through the environment, with one class for each
 * launcher.
 */
@NullMarked
package dev.tutti.runtime.launch;

import org.jspecify.annotations.NullMarked;
