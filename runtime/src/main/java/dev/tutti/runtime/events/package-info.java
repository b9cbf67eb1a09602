/** Events for the JDK's Flight Recorder, if the JDK has it. */
package dev.tutti.runtime.events;
