package dev.tutti.runtime.model;

import dev.tutti.runtime.model.Model.Violation;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/** Goes through the histories of a {@link Model}. */
public final class Explorer {
  private Explorer() {}

  /** A state, and how it came about. */
  private record Node<A>(Model<A> model, @Nullable Node<A> before, @Nullable A action) {
    List<A> way() {
      List<A> way = new ArrayList<>();
      for (Node<A> node = this; node.before != null; node = node.before) {
        way.add(node.action);
      }
      Collections.reverse(way);
      return way;
    }
  }

  /**
   * Goes through all histories.
   *
   * @param title what an error begins with
   * @return the number of states at which histories end
   * @throws AssertionError if a state must not be, or an action changes nothing
   */
  public static <A> int explore(String title, Model<A> start) {
    LongSet seen = new LongSet();
    seen.add(start.fingerprint());
    Deque<Node<A>> todo = new ArrayDeque<>(List.of(new Node<>(start, null, null)));
    int ends = 0;
    while (!todo.isEmpty()) {
      Node<A> node = todo.removeLast();
      List<A> actions = node.model.actions();
      long own = node.model.fingerprint();
      A last = null;
      try {
        if (actions.isEmpty()) {
          node.model.checkEnd();
          ends++;
        }
        for (A action : actions) {
          last = action;
          Model<A> next = node.model.after(action);
          long fingerprint = next.fingerprint();
          if (fingerprint == own) {
            throw new Violation(action + " changes nothing");
          }
          if (seen.add(fingerprint)) {
            todo.add(new Node<>(next, node, action));
          }
        }
      } catch (Violation e) {
        throw new AssertionError(
            "%s: %s\n%s, then %s\n%s"
                .formatted(title, e.getMessage(), node.way(), last, node.model),
            e);
      }
    }
    return ends;
  }

  /**
   * Goes through one history.
   *
   * @param title what an error begins with
   * @throws AssertionError if a state must not be
   */
  public static <A> void walk(String title, Model<A> start, SplittableRandom random) {
    Node<A> node = new Node<>(start, null, null);
    try {
      List<A> actions = node.model.actions();
      while (!actions.isEmpty()) {
        A action = actions.get(random.nextInt(actions.size()));
        node = new Node<>(node.model.after(action), node, action);
        actions = node.model.actions();
      }
      node.model.checkEnd();
    } catch (Violation e) {
      throw new AssertionError(
          "%s: %s\n%s\n%s".formatted(title, e.getMessage(), node.way(), node.model), e);
    }
  }
}
