package dev.tutti.runtime.debug;

import dev.tutti.GroupListener;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The metrics of one group of a rank at one moment.
 *
 * @param group the name of the group; no two open groups have the same name
 * @param listeners takes a listener that receives operations from now on
 * @param lastCollective the number of the last collective
 * @param pending how many operations have not ended
 * @param waitedSeconds how many seconds the oldest of those has waited
 * @param hasFailed whether the group has failed
 * @param paths how many collectives took each path
 */
public record GroupMeter(
    String group,
    Consumer<GroupListener> listeners,
    long lastCollective,
    int pending,
    double waitedSeconds,
    boolean hasFailed,
    Map<String, Long> paths) {}
