package dev.tutti.cuda.driver;

import dev.tutti.BackendException;
import dev.tutti.cuda.driver.LinkCalls.Link;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Counts the NVLinks between devices. Two devices at switches have as many as the one with fewer
 * links to switches, since all switches of a host are taken to be connected.
 */
public final class LinkMatrix {
  private final int[][] counts;
  private final String problem;

  private LinkMatrix(int[][] counts, String problem) {
    this.counts = counts;
    this.problem = problem;
  }

  /**
   * Counts the links between some devices; all zero if they cannot be had.
   *
   * @param pciBusIds the devices
   * @param calls who knows their links
   */
  public static LinkMatrix of(List<String> pciBusIds, LinkCalls calls) {
    int size = pciBusIds.size();
    List<List<Link>> links = new ArrayList<>();
    try {
      for (String busId : pciBusIds) {
        links.add(calls.links(busId));
      }
    } catch (BackendException e) {
      return new LinkMatrix(new int[size][size], String.valueOf(e.getMessage()));
    }
    int[][] counts = new int[size][size];
    for (int i = 0; i < size; i++) {
      for (int j = 0; j < size; j++) {
        if (i != j) {
          counts[i][j] =
              direct(links.get(i), pciBusIds.get(j))
                  + Math.min(switched(links.get(i)), switched(links.get(j)));
        }
      }
    }
    return new LinkMatrix(counts, "");
  }

  private static int direct(List<Link> links, String peer) {
    int count = 0;
    for (Link link : links) {
      if (link instanceof Link.ToDevice device && isSame(device.pciBusId(), peer)) {
        count++;
      }
    }
    return count;
  }

  private static int switched(List<Link> links) {
    int count = 0;
    for (Link link : links) {
      if (link instanceof Link.ToSwitch) {
        count++;
      }
    }
    return count;
  }

  /** Compares places on the bus; the domain has four digits in some texts and eight in others. */
  private static boolean isSame(String one, String other) {
    return shortForm(one).equals(shortForm(other));
  }

  private static String shortForm(String busId) {
    String lower = busId.toLowerCase(Locale.ROOT);
    int colon = lower.indexOf(':');
    return colon > 4 ? lower.substring(colon - 4) : lower;
  }

  /** Returns the number of devices. */
  public int size() {
    return counts.length;
  }

  /** Returns the number of links between two devices. */
  public int count(int device, int peer) {
    return counts[device][peer];
  }

  /** Tells whether every device has a link to every other one. */
  public boolean isFullyConnected() {
    for (int i = 0; i < counts.length; i++) {
      for (int j = 0; j < counts.length; j++) {
        if (i != j && counts[i][j] == 0) {
          return false;
        }
      }
    }
    return true;
  }

  /** Returns why the links could not be counted, or empty text. */
  public String problem() {
    return problem;
  }

  @Override
  public String toString() {
    return Arrays.deepToString(counts);
  }
}
