package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.Until;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import dev.tutti.testing.TestAuthority;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RankLinksTest {
  private static final JobToken TOKEN = JobToken.of("a token of this job");

  @TempDir private Path directory;

  /** Collects notes until it has the requested number. */
  static class Notes implements NoteReceiver {
    final List<List<Long>> all = Collections.synchronizedList(new ArrayList<>());
    final CountDownLatch missing;

    Notes(int count) {
      missing = new CountDownLatch(count);
    }

    @Override
    public void take(int sender, long kind, long a, long b, long c) {
      all.add(List.of((long) sender, kind, a, b, c));
      missing.countDown();
    }

    @Override
    public void ended(int sender) {}

    @Override
    public void fail(IOException cause, int peer) {
      throw new AssertionError(cause);
    }
  }

  /**
   * Learns of the exit of a rank that never had a note for this one, and receives its earlier notes
   * first.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theEndOfEachPeerIsToldAfterItsNotes(boolean overNetwork) throws Exception {
    Ranks.run(
        new HashStore(),
        3,
        exchange -> {
          RankLinks links =
              overNetwork
                  ? RankLinks.open(
                      InetAddress::getLoopbackAddress, null, TOKEN, exchange, Ranks.soon())
                  : RankLinks.open(directory, exchange, Ranks.soon());
          List<Long> heard = Collections.synchronizedList(new ArrayList<>());
          links.listen(
              new Notes(0) {
                @Override
                public void take(int sender, long kind, long a, long b, long c) {
                  heard.add(kind);
                }

                @Override
                public void ended(int sender) {
                  heard.add((long) -sender);
                }
              });
          exchange.barrier(Ranks.soon());
          if (exchange.rank() == 0) {
            Until.holds("a note and two ends", () -> heard.size() == 3);
            assertThat(heard).containsExactlyInAnyOrder(7L, -1L, -2L).containsSubsequence(7L, -1L);
          } else if (exchange.rank() == 1) {
            links.send(0, 7, 0, 0, 0);
          }
          links.close();
          return null;
        });
  }

  @Test
  void notesComeInTheOrderOfTheirSenderEvenIfNobodyListensYet() throws Exception {
    int count = 20_000; // more than a socket buffers
    HashStore store = new HashStore();
    CountDownLatch sent = new CountDownLatch(1);
    Ranks.run(
        store,
        2,
        exchange -> {
          int rank = exchange.rank();
          try (RankLinks links = RankLinks.open(directory, exchange, Ranks.soon())) {
            Notes notes = new Notes(rank == 0 ? 1 : count);
            if (rank == 0) {
              links.listen(notes);
              for (int i = 0; i < count; i++) {
                links.send(1, 5, i, 2L * i, -1);
              }
              sent.countDown();
              Ranks.await(notes.missing);
              assertThat(notes.all).containsExactly(List.of(1L, 9L, 0L, 0L, 0L));
            } else {
              Ranks.await(sent);
              links.listen(notes);
              Ranks.await(notes.missing);
              for (int i = 0; i < count; i++) {
                assertThat(notes.all.get(i)).containsExactly(0L, 5L, (long) i, 2L * i, -1L);
              }
              links.send(0, 9, 0, 0, 0);
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files).isEmpty();
    }
  }

  /** Fills the sockets, then listens, and sends one more note. */
  @Test
  void notesFromBeforeAndAfterTheirSenderListensComeInOrder() throws Exception {
    int count = 20_000; // more than a socket buffers
    Notes notes = new Notes(count + 1);
    CountDownLatch sent = new CountDownLatch(1);
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          try (RankLinks links = RankLinks.open(directory, exchange, Ranks.soon())) {
            if (exchange.rank() == 0) {
              for (int i = 0; i < count; i++) {
                links.send(1, 5, i, 0, 0);
              }
              links.listen(new Notes(0));
              links.send(1, 5, count, 0, 0);
              sent.countDown();
            } else {
              Ranks.await(sent);
              links.listen(notes);
              Ranks.await(notes.missing);
            }
            exchange.barrier(Ranks.soon());
          }
          return null;
        });
    for (int i = 0; i <= count; i++) {
      assertThat(notes.all.get(i)).containsExactly(0L, 5L, (long) i, 0L, 0L);
    }
  }

  /** Sends over TCP, also right before the close, to a peer that answers on its own link. */
  @Test
  void notesComeOverTcpEvenIfTheSenderClosesAtOnce() throws Exception {
    int count = 20_000;
    HashStore store = new HashStore();
    Ranks.run(
        store,
        3,
        exchange -> {
          int rank = exchange.rank();
          RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, null, TOKEN, exchange, Ranks.soon());
          Notes notes = new Notes(rank == 2 ? 2 * count : 0);
          links.listen(notes);
          for (int i = 0; rank < 2 && i < count; i++) {
            links.send(2, 5, i, -i, rank);
          }
          Ranks.await(notes.missing);
          links.close();
          for (long sender = 0; rank == 2 && sender < 2; sender++) {
            long next = 0;
            for (List<Long> note : notes.all) {
              if (note.get(0) == sender) {
                assertThat(note).containsExactly(sender, 5L, next, -next, sender);
                next++;
              }
            }
            assertThat(next).isEqualTo(count);
          }
          return null;
        });
  }

  @Test
  void noAddressIsNamedOnAllRanks() throws Exception {
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          RankLinks.Local local =
              () -> {
                if (exchange.rank() == 0) {
                  throw new IOException("eth9 does not exist");
                }
                return InetAddress.getLoopbackAddress();
              };
          assertThatThrownBy(() -> RankLinks.open(local, null, TOKEN, exchange, Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessage("rank 0: cannot create the socket for TCP: eth9 does not exist");
          return null;
        });
  }

  /** Has ranks with different tokens, of which each connects to the other. */
  @Test
  void aRankWithAnotherTokenIsNotTrusted() throws Exception {
    CountDownLatch refused = new CountDownLatch(2);
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          int rank = exchange.rank();
          JobToken own = JobToken.of("the token of rank " + rank);
          try (RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, null, own, exchange, Ranks.soon())) {
            Notes notes =
                new Notes(0) {
                  @Override
                  public void fail(IOException cause, int peer) {
                    assertThat(cause)
                        .hasMessageContaining("it closed the connection during authentication");
                    assertThat(peer).isEqualTo(1 - rank);
                    refused.countDown();
                  }
                };
            links.listen(notes);
            try {
              links.send(1 - rank, 5, 0, 0, 0);
            } catch (PeerLostException e) {
              notes.fail(new IOException(e.getMessage(), e), 1 - rank);
            }
            Ranks.await(refused);
            assertThat(notes.all).isEmpty();
          }
          return null;
        });
  }

  @Test
  void whoClosedItsTcpLinksIsNamed() throws Exception {
    CountDownLatch closed = new CountDownLatch(1);
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, null, TOKEN, exchange, Ranks.soon());
          if (exchange.rank() == 1) {
            links.close();
            closed.countDown();
            return null;
          }
          Ranks.await(closed);
          CompletableFuture<String> cause = new CompletableFuture<>();
          links.listen(
              new Notes(0) {
                @Override
                public void fail(IOException e, int peer) {
                  assertThat(peer).isOne();
                  cause.complete(e.getMessage());
                }
              });
          try {
            links.send(1, 1, 0, 0, 0);
          } catch (PeerLostException e) {
            cause.complete(e.getMessage()); // the loopback may refuse immediately
          }
          assertThat(cause.get(60, TimeUnit.SECONDS))
              .startsWith("rank 0: rank 1 no longer listens");
          links.close();
          return null;
        });
  }

  private SSLContext tls(String authority, String subject) throws Exception {
    return tls(directory, authority, subject);
  }

  /** Returns the TLS of a rank whose certificate an authority issues in the folder. */
  static SSLContext tls(Path directory, String authority, String subject) throws Exception {
    TestAuthority trusted = new TestAuthority(directory, authority);
    TestAuthority.Issued own = trusted.issue(subject);
    return Objects.requireNonNull(
        TlsSettings.load(
            Settings.ofEnvironment(
                Map.of(
                    "TUTTI_TLS", "true",
                    "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT", own.certificate().toString(),
                    "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY", own.key().toString(),
                    "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE", trusted.certificate().toString()))));
  }

  /** Sends more than sockets buffer, in order, up to the last notes before a close. */
  @Test
  void encryptedNotesComeInOrderUpToTheLast() throws Exception {
    SSLContext tls = tls("authority", "rank");
    int count = 20_000;
    int last = 100;
    // A close leaves the notes a second, which is little for a handshake on a busy machine.
    Notes notes = new Notes(count + 1);
    CountDownLatch most = new CountDownLatch(count + 1 - last);
    CountDownLatch ends = new CountDownLatch(2);
    Ranks.run(
        new HashStore(),
        3,
        exchange -> {
          RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, tls, TOKEN, exchange, Ranks.soon());
          if (exchange.rank() == 0) {
            links.listen(
                new Notes(0) {
                  @Override
                  public void take(int sender, long kind, long a, long b, long c) {
                    notes.take(sender, kind, a, b, c);
                    most.countDown();
                  }

                  @Override
                  public void ended(int sender) {
                    ends.countDown();
                  }
                });
            Ranks.await(ends);
          } else {
            links.listen(new Notes(0));
            int own = exchange.rank() == 1 ? count : 1;
            for (int i = 0; i < own; i++) {
              if (i == count - last) {
                Ranks.await(most);
              }
              links.send(0, 5, i, 2L * i, -1);
            }
            Ranks.await(most);
          }
          links.close();
          return null;
        });
    assertThat(notes.missing.getCount()).isZero();
    assertThat(notes.all).contains(List.of(2L, 5L, 0L, 0L, -1L));
    List<List<Long>> ofOne = notes.all.stream().filter(note -> note.getFirst() == 1).toList();
    assertThat(ofOne).hasSize(count);
    for (int i = 0; i < count; i++) {
      assertThat(ofOne.get(i)).containsExactly(1L, 5L, (long) i, 2L * i, -1L);
    }
  }

  /** Sends nothing readable to a rank that presents no certificate of the authority. */
  @Test
  void aRankWithAnotherAuthorityIsNotTrusted() throws Exception {
    SSLContext one = tls("one", "first");
    SSLContext other = tls("other", "second");
    CountDownLatch failed = new CountDownLatch(1);
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          boolean sends = exchange.rank() == 0;
          try (RankLinks links =
              RankLinks.open(
                  InetAddress::getLoopbackAddress,
                  sends ? one : other,
                  TOKEN,
                  exchange,
                  Ranks.soon())) {
            Notes notes =
                new Notes(0) {
                  @Override
                  public void fail(IOException cause, int peer) {
                    assertThat(peer).isEqualTo(1);
                    failed.countDown();
                  }
                };
            links.listen(notes);
            if (sends) {
              Until.holds(
                  "the refusal",
                  () -> {
                    try {
                      links.send(1, 5, 0, 0, 0);
                    } catch (PeerLostException e) {
                      failed.countDown();
                    }
                    return failed.getCount() == 0;
                  });
            } else {
              Ranks.await(failed);
            }
            assertThat(notes.all).isEmpty();
          }
          return null;
        });
  }

  @Test
  void aRankThatDoesNotEncryptIsNamedOnAllRanks() throws Exception {
    SSLContext tls = tls("authority", "rank");
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          SSLContext own = exchange.rank() == 0 ? tls : null;
          assertThatThrownBy(
                  () ->
                      RankLinks.open(
                          InetAddress::getLoopbackAddress, own, TOKEN, exchange, Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("TUTTI_TLS is set for rank 0, but not for rank 1");
          return null;
        });
  }

  @Test
  void aDirectoryThatIsNotThereIsNamedOnAllRanks() throws Exception {
    HashStore store = new HashStore();
    Ranks.run(
        store,
        2,
        exchange -> {
          int rank = exchange.rank();
          Path own = rank == 0 ? directory.resolve("nowhere") : directory;
          assertThatThrownBy(() -> RankLinks.open(own, exchange, Ranks.soon()))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("rank 0: cannot create the socket");
          return null;
        });
  }

  @Test
  void whoClosedIsNamed() throws Exception {
    HashStore store = new HashStore();
    CountDownLatch closed = new CountDownLatch(1);
    Ranks.run(
        store,
        2,
        exchange -> {
          int rank = exchange.rank();
          RankLinks links = RankLinks.open(directory, exchange, Ranks.soon());
          if (rank == 1) {
            links.close();
            closed.countDown();
            return null;
          }
          Ranks.await(closed);
          assertThatThrownBy(() -> links.send(1, 1, 0, 0, 0))
              .isInstanceOf(PeerLostException.class)
              .hasMessageContaining("rank 1 no longer listens");
          links.close();
          return null;
        });
  }

  @Test
  void theEndOfTheThreadThatListensIsTold() throws Exception {
    CountDownLatch told = new CountDownLatch(1);
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, null, TOKEN, exchange, Ranks.soon());
          if (exchange.rank() == 0) {
            links.listen(
                new Notes(0) {
                  @Override
                  public void take(int sender, long kind, long a, long b, long c) {
                    throw new StackOverflowError("played");
                  }

                  @Override
                  public void fail(IOException e, int peer) {
                    assertThat(e).hasMessageContaining("StackOverflowError: played");
                    assertThat(peer).isEqualTo(-1);
                    told.countDown();
                  }
                });
          } else {
            links.listen(new Notes(0));
            links.send(0, 7, 0, 0, 0);
          }
          Ranks.await(told);
          links.close();
          return null;
        });
  }

  /** Loses a peer that does not read, and then still receives from another one. */
  @Test
  void theLossOfAPeerDoesNotEndTheOthersLinks() throws Exception {
    CountDownLatch full = new CountDownLatch(1);
    CountDownLatch lost = new CountDownLatch(1);
    Ranks.run(
        new HashStore(),
        3,
        exchange -> {
          int rank = exchange.rank();
          RankLinks links =
              RankLinks.open(InetAddress::getLoopbackAddress, null, TOKEN, exchange, Ranks.soon());
          if (rank == 0) {
            Notes notes =
                new Notes(1) {
                  @Override
                  public void fail(IOException e, int peer) {
                    assertThat(peer).isOne();
                    lost.countDown();
                  }
                };
            links.listen(notes);
            try {
              for (int i = 0; i < 500_000; i++) { // more than sockets buffer
                links.send(1, 5, i, 0, 0);
              }
            } finally {
              full.countDown();
            }
            Ranks.await(lost);
            Ranks.await(notes.missing);
            assertThat(notes.all).containsExactly(List.of(2L, 9L, 1L, 2L, 3L));
          } else if (rank == 1) {
            Ranks.await(full);
          } else {
            links.listen(new Notes(0));
            Ranks.await(lost);
            links.send(0, 9, 1, 2, 3);
          }
          links.close();
          return null;
        });
  }

  static RankLinks open(SSLContext tls, StoreExchange exchange) {
    return RankLinks.open(InetAddress::getLoopbackAddress, tls, TOKEN, exchange, Ranks.soon());
  }

  static void readToTheEnd(Socket socket) throws IOException {
    try {
      socket.getInputStream().readAllBytes();
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  /** Connects to a rank and sends nothing. */
  @Test
  @Tag("full")
  void whoDoesNotSayTheTokenIsClosed() throws Exception {
    Ranks.run(
        new HashStore(),
        2,
        exchange -> {
          RankLinks links = RankLinks.open(directory, exchange, Ranks.soon());
          Notes notes = new Notes(1);
          links.listen(notes);
          exchange.barrier(Ranks.soon());
          links.send(1 - exchange.rank(), 5, 1, 2, 3);
          Ranks.await(notes.missing);
          exchange.barrier(Ranks.soon());
          if (exchange.rank() == 0) {
            List<SocketChannel> silent = new ArrayList<>();
            for (int i = 0; i < 2 + 64 + 1; i++) {
              silent.add(SocketChannel.open(UnixDomainSocketAddress.of(socketOf(1))));
            }
            assertThat(silent.getFirst().read(ByteBuffer.allocate(1))).isEqualTo(-1);
            SocketChannel last = silent.getLast();
            last.configureBlocking(false);
            assertThat(last.read(ByteBuffer.allocate(1))).isZero();
            last.configureBlocking(true);
            assertThat(last.read(ByteBuffer.allocate(1))).isEqualTo(-1);
            for (SocketChannel each : silent) {
              each.close();
            }
            links.send(1, 5, 4, 5, 6);
          } else {
            Until.holds("the second note", () -> notes.all.size() == 2);
            assertThat(notes.all.getLast()).containsExactly(0L, 5L, 4L, 5L, 6L);
          }
          exchange.barrier(Ranks.soon());
          links.close();
          return null;
        });
  }

  private Path socketOf(int rank) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files
          .filter(file -> file.getFileName().toString().startsWith("tutti-" + rank + "-"))
          .findFirst()
          .orElseThrow();
    }
  }
}
