package dev.tutti.runtime.debug;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.view.JobView;
import java.util.List;
import java.util.function.Supplier;

/**
 * The information about a rank that a debug server shows. Any thread may call its suppliers.
 *
 * @param rank the rank among all
 * @param size the number of all ranks
 * @param status where the rank stands, as JSON
 * @param job where all ranks of the job stand; asks them
 * @param flightRecord the flight records of the rank's groups, as JSON
 * @param settings the settings of the rank
 * @param declared the settings that exist
 * @param groups the open groups of the rank
 */
public record DebugSource(
    int rank,
    int size,
    Supplier<String> status,
    Supplier<JobView> job,
    Supplier<String> flightRecord,
    Settings settings,
    List<Setting<?>> declared,
    Supplier<List<GroupMeter>> groups) {}
