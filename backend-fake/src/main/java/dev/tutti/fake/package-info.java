/**
 * Groups for tests: one that only pretends to communicate, one whose ranks are threads, and faults
 * on demand.
 *
 * <p>Begin with {@link dev.tutti.fake.ThreadedWorld}, which runs a body on ranks that are threads.
 * {@link dev.tutti.fake.Faults} breaks them on demand, and {@link dev.tutti.fake.CallRecorder}
 * lists their calls.
 *
 * {@snippet file="FakeSnippetsTest.java" region="world"}
 */
@NullMarked
package dev.tutti.fake;

import org.jspecify.annotations.NullMarked;
