package dev.tutti.cuda.driver;

import dev.tutti.BackendException;
import dev.tutti.cuda.driver.LinkCalls.Link;
import dev.tutti.kernels.PeerLinks;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * The numbers of NVLinks between devices. Two devices on switches have as many links as the one
 * with fewer links to switches, on the assumption that all switches of a host are connected.
 */
public final class LinkMatrix {
  private static final System.Logger LOG = System.getLogger(LinkMatrix.class.getName());
  private static final String NOT_KNOWN = "?";
  private static final String SWITCH = "switch";

  private final int[][] counts;
  private final PeerLinks slowest;
  private final String problem;

  private LinkMatrix(int[][] counts, PeerLinks slowest, String problem) {
    this.counts = counts;
    this.slowest = slowest;
    this.problem = problem;
  }

  /**
   * Counts the links between some devices; all counts are zero if the links cannot be queried.
   *
   * @param pciBusIds the devices' PCI bus IDs
   * @param calls provides the links
   */
  public static LinkMatrix of(List<String> pciBusIds, LinkCalls calls) {
    int size = pciBusIds.size();
    List<List<Link>> links = new ArrayList<>();
    try {
      for (String busId : pciBusIds) {
        links.add(calls.links(busId));
      }
    } catch (BackendException e) {
      return new LinkMatrix(new int[size][size], PeerLinks.UNKNOWN, String.valueOf(e.getMessage()));
    }
    int[][] counts = new int[size][size];
    PeerLinks slowest = PeerLinks.SWITCH;
    for (int i = 0; i < size; i++) {
      for (int j = 0; j < size; j++) {
        if (i != j) {
          int direct = direct(links.get(i), pciBusIds.get(j));
          int switched = Math.min(switched(links.get(i)), switched(links.get(j)));
          counts[i][j] = direct + switched;
          if (!isSame(pciBusIds.get(i), pciBusIds.get(j))) {
            slowest = slower(slowest, kind(direct, switched));
          }
        }
      }
    }
    return new LinkMatrix(counts, slowest, "");
  }

  private static PeerLinks kind(int direct, int switched) {
    if (switched > 0) {
      return PeerLinks.SWITCH;
    }
    return direct > 0 ? PeerLinks.DIRECT : PeerLinks.PCIE;
  }

  private static PeerLinks slower(PeerLinks one, PeerLinks other) {
    return one.compareTo(other) > 0 ? one : other;
  }

  /**
   * Writes the links of a device as text, so that processes that do not see the device can count
   * them.
   *
   * @param pciBusId the device's PCI bus ID
   * @param calls provides the links
   */
  public static String write(String pciBusId, LinkCalls calls) {
    try {
      return calls.links(pciBusId).stream()
          .map(link -> link instanceof Link.ToDevice device ? device.pciBusId() : SWITCH)
          .collect(Collectors.joining(" "));
    } catch (RuntimeException | LinkageError e) {
      LOG.log(Level.DEBUG, "the links of " + pciBusId + " are not known", e);
      return NOT_KNOWN;
    }
  }

  /**
   * Counts the links between devices from the texts that {@link #write} made for each of them.
   *
   * @param pciBusIds the devices' PCI bus IDs
   * @param written the text for each device
   */
  public static LinkMatrix read(List<String> pciBusIds, List<String> written) {
    return of(pciBusIds, busId -> parse(written.get(pciBusIds.indexOf(busId))));
  }

  private static List<Link> parse(String text) {
    if (text.equals(NOT_KNOWN)) {
      throw new BackendException("a rank does not know the links of its device");
    }
    List<Link> links = new ArrayList<>();
    for (String word : text.split(" ", -1)) {
      if (!word.isEmpty()) {
        links.add(word.equals(SWITCH) ? new Link.ToSwitch() : new Link.ToDevice(word));
      }
    }
    return links;
  }

  /** Returns the kind of connection between the slowest pair of devices. */
  public PeerLinks slowest() {
    return slowest;
  }

  private static int direct(List<Link> links, String peer) {
    return (int)
        links.stream()
            .filter(link -> link instanceof Link.ToDevice to && isSame(to.pciBusId(), peer))
            .count();
  }

  private static int switched(List<Link> links) {
    return (int) links.stream().filter(Link.ToSwitch.class::isInstance).count();
  }

  /** Compares PCI bus IDs; their domain has four digits in some texts and eight in others. */
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

  /** Returns why the links could not be counted, or an empty string. */
  public String problem() {
    return problem;
  }

  @Override
  public String toString() {
    return Arrays.deepToString(counts);
  }
}
