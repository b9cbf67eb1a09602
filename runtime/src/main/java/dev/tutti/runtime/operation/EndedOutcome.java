package dev.tutti.runtime.operation;

import dev.tutti.GroupListener.Outcome;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.Optional;

/** The end of an operation. */
record EndedOutcome(
    WorkState state, Duration duration, Optional<String> path, Optional<TuttiException> failure)
    implements Outcome {}
