/** Events for the JDK's Flight Recorder, if the JDK has it. */
@NullMarked
package dev.tutti.runtime.events;

import org.jspecify.annotations.NullMarked;
