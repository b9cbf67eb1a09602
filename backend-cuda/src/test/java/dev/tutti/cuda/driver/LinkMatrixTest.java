package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.BackendException;
import dev.tutti.cuda.driver.LinkCalls.Link;
import dev.tutti.kernels.PeerLinks;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LinkMatrixTest {
  private static final List<String> TWO = List.of("0000:1B:00.0", "0000:2A:00.0");

  @Test
  void devicesAtSwitchesHaveTheFewerLinks() {
    Map<String, Integer> links = Map.of("a", 18, "b", 12, "c", 0);
    LinkMatrix matrix =
        LinkMatrix.of(
            List.of("a", "b", "c"),
            busId -> Collections.nCopies(links.get(busId), new Link.ToSwitch()));
    assertThat(matrix).hasToString("[[0, 12, 0], [12, 0, 0], [0, 0, 0]]");
  }

  @Test
  void directLinksCountForTheirPair() {
    LinkMatrix matrix =
        LinkMatrix.of(
            TWO,
            busId ->
                Collections.nCopies(
                    4,
                    new Link.ToDevice(
                        busId.equals(TWO.get(0)) ? "00000000:2a:00.0" : "00000000:1B:00.0")));
    assertThat(matrix.count(0, 1)).isEqualTo(4);
    assertThat(matrix.count(1, 0)).isEqualTo(4);
    assertThat(matrix.problem()).isEmpty();
  }

  @Test
  void theSlowestTwoDevicesSayWhatConnectsAll() {
    assertThat(slowest("switch switch", "switch", "switch")).isEqualTo(PeerLinks.SWITCH);
    assertThat(slowest("b c", "a c", "a b")).isEqualTo(PeerLinks.DIRECT);
    assertThat(slowest("switch b", "switch a", "a")).isEqualTo(PeerLinks.PCIE);
    assertThat(slowest("", "", "")).isEqualTo(PeerLinks.PCIE);
    assertThat(slowest("switch", "?", "switch")).isEqualTo(PeerLinks.UNKNOWN);
    assertThat(LinkMatrix.read(List.of("a", "a"), List.of("", "")).slowest())
        .as("one device")
        .isEqualTo(PeerLinks.SWITCH);
  }

  private static PeerLinks slowest(String... written) {
    return LinkMatrix.read(List.of("a", "b", "c"), List.of(written)).slowest();
  }

  @Test
  void linksAreWrittenDownForOthers() {
    LinkCalls calls = busId -> List.of(new Link.ToSwitch(), new Link.ToDevice("0000:2A:00.0"));
    assertThat(LinkMatrix.write("a", calls)).isEqualTo("switch 0000:2A:00.0");
    assertThat(LinkMatrix.write("a", _ -> List.of())).isEmpty();
    LinkCalls missing =
        _ -> {
          throw new BackendException("no NVML");
        };
    assertThat(LinkMatrix.write("a", missing)).isEqualTo("?");
  }

  @Test
  void aFailureLeavesZerosAndAReason() {
    LinkMatrix matrix =
        LinkMatrix.of(
            TWO,
            _ -> {
              throw new BackendException("the loader cannot find libnvidia-ml.so.1");
            });
    assertThat(matrix).hasToString("[[0, 0], [0, 0]]");
    assertThat(matrix.problem()).contains("libnvidia-ml.so.1");
    assertThat(matrix.slowest()).isEqualTo(PeerLinks.UNKNOWN);
  }
}
