package dev.tutti.runtime.membership;

import dev.tutti.runtime.model.Hash;
import org.jspecify.annotations.Nullable;

/** A process in a {@link ChangeModel}. */
final class Party {
  @Nullable ChangeState state;

  /** What it had of the log when it last entered a generation. */
  Membership known;

  int number;
  String name = "";
  long generation;
  int calls;
  boolean isCrashed;
  boolean isPaused;
  boolean isCutOff;
  boolean wasDisturbed;
  boolean hasWill;
  ChangeOutput.@Nullable Append append;
  @Nullable ChangeInput reply;
  long says;
  long saidAt = -1;
  ChangeOutput.@Nullable Collect collect;
  long steppedAt = -1;
  @Nullable ChangeOutput end;

  Party(Membership known, int number, String name) {
    this.known = known;
    this.number = number;
    this.name = name;
  }

  Party(Party other) {
    state = other.state == null ? null : new ChangeState(other.state);
    known = other.known;
    number = other.number;
    name = other.name;
    generation = other.generation;
    calls = other.calls;
    isCrashed = other.isCrashed;
    isPaused = other.isPaused;
    isCutOff = other.isCutOff;
    wasDisturbed = other.wasDisturbed;
    hasWill = other.hasWill;
    append = other.append;
    reply = other.reply;
    says = other.says;
    saidAt = other.saidAt;
    collect = other.collect;
    steppedAt = other.steppedAt;
    end = other.end;
  }

  boolean runs() {
    return !isCrashed && !isPaused;
  }

  String who() {
    return number >= 0 ? String.valueOf(number) : name;
  }

  void addTo(Hash hash, long now) {
    hash.add(
        (isCrashed ? 1 : 0)
            + (isPaused ? 2 : 0)
            + (isCutOff ? 4 : 0)
            + (hasWill ? 8 : 0)
            + (steppedAt == now ? 16 : 0)
            + (wasDisturbed ? 32 : 0)
            + 64L * calls);
    if (isCrashed) {
      return;
    }
    hash.add(number);
    hash.add(generation);
    hash.add(append == null ? 0 : append.place() * 31 + append.entry().text().hashCode());
    hash.add(reply == null ? 0 : reply.hashCode());
    hash.add(says);
    hash.add(saidAt);
    hash.add(collect == null ? 0 : collect.hashCode());
    hash.add(end == null ? 0 : end.hashCode());
    if (state != null && end == null) {
      state.addTo(hash::add);
    }
  }
}
