package dev.tutti.aeron.wire;

import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;

/**
 * How a session reaches the servers of a store, apart from their addresses; users set this through
 * {@code AeronStoreOptions}. Stores that have it in common share a session.
 *
 * @param token the token that client and server prove to each other
 * @param memory whether messages may travel through shared memory
 * @param udp whether messages may travel over UDP
 * @param directory where the folder of an embedded driver is created
 * @param driver the folder of a running media driver, or empty for an embedded one
 * @param lease the time within which a lost host is noticed
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
