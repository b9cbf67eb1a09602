/**
 * What launchers pass a process about its rank through the environment, with one class for each
 * launcher.
 */
package dev.tutti.runtime.launch;
