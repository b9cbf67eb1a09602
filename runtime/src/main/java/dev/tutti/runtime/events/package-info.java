/** Events for the JDK's Flight Recorder, where the JDK has one. */
@NullMarked
package dev.tutti.runtime.events;

import org.jspecify.annotations.NullMarked;
