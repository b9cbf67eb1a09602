/** The settings of the runtime, and the providers that they choose among. */
@NullMarked
package dev.tutti.runtime.settings;

import org.jspecify.annotations.NullMarked;
