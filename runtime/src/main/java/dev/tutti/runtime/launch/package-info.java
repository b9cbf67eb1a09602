/**
 * What launchers tell a process of its rank through the environment, one class for each of them.
 */
@NullMarked
package dev.tutti.runtime.launch;

import org.jspecify.annotations.NullMarked;
