package dev.tutti.aeron.wire;

import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;

/**
 * How a session reaches those who serve a store, apart from where they are; {@code
 * AeronStoreOptions} has it from users. Stores that have it in common share a session.
 *
 * @param token what client and server prove to each other
 * @param memory whether messages may travel by shared memory
 * @param udp whether messages may travel by UDP
 * @param directory where the folder of an embedded driver is made
 * @param driver folder of a media driver that runs already; empty for an embedded one
 * @param lease within which a lost host is noticed
 * @param spin whether threads that wait for messages never sleep
 */
public record ConnectOptions(
    JobToken token,
    boolean memory,
    boolean udp,
    Path directory,
    String driver,
    Duration lease,
    boolean spin) {}
