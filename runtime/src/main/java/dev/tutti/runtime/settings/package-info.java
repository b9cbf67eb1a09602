/** The settings of the runtime, and the providers that they choose among. */
package dev.tutti.runtime.settings;
