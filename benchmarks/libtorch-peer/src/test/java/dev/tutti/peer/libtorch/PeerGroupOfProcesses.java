package dev.tutti.peer.libtorch;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/** All ranks of a group as libtorch processes; rank 0 hosts the store. */
final class PeerGroupOfProcesses implements AutoCloseable {
  /** Longer than the peers' own limit, so that what they say of it is seen. */
  static final Duration LIMIT = Duration.ofSeconds(90);

  private final List<PeerProcess> ranks;

  PeerGroupOfProcesses(int size, String... options) {
    ranks = PeerProcess.load(size);
    try {
      PeerProcess first = ranks.getFirst();
      int port = first.open(PeerArguments.tcpServer(0, size).with(options)).awaitPort(LIMIT);
      List<String> clientOptions = new ArrayList<>(List.of(options));
      clientOptions.remove("--legacy");
      for (int rank = 1; rank < size; rank++) {
        PeerArguments client = PeerArguments.tcp(rank, size, port);
        ranks.get(rank).open(client.with(clientOptions.toArray(String[]::new)));
      }
      ranks.forEach(rank -> rank.awaitReady(LIMIT));
    } catch (Throwable failure) {
      close();
      throw failure;
    }
  }

  PeerProcess rank(int rank) {
    return ranks.get(rank);
  }

  /** Runs one line on each rank; returns the results by rank. */
  List<PeerResult> each(IntFunction<String> lineOfRank) {
    for (int rank = 0; rank < ranks.size(); rank++) {
      ranks.get(rank).send(lineOfRank.apply(rank));
    }
    return ranks.stream().map(rank -> rank.await(LIMIT)).toList();
  }

  /** Runs lines on all ranks and compares every result with the oracle. */
  void expectAll(List<String> lines) {
    String[] script = lines.toArray(String[]::new);
    ranks.forEach(rank -> rank.send(script));
    for (String line : lines) {
      for (int rank = 0; rank < ranks.size(); rank++) {
        PeerResult result = ranks.get(rank).await(LIMIT);
        assertThat(result.ok()).as("%s on rank %d: %s", line, rank, result).isTrue();
        assertThat(result.crc())
            .as("%s on rank %d: %s", line, rank, result)
            .isEqualTo(PeerData.crc(PeerOracle.expected(line, rank, ranks.size())));
      }
    }
  }

  void leave() {
    assertThat(each(rank -> "close")).allMatch(PeerResult::ok);
    ranks.forEach(rank -> assertThat(rank.awaitExit(LIMIT)).isZero());
  }

  @Override
  public void close() {
    ranks.forEach(PeerProcess::close);
  }
}
