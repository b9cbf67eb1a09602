package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.transport.ScriptedSocket.End;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ListenerTest {
  private static final String FULL = "Too many open files, says this test";

  /**
   * A server socket with connections to accept, or one that fails to accept for lack of resources.
   */
  private static final class Server extends ServerSocketChannel {
    final Queue<SocketChannel> waiting = new ArrayDeque<>();
    boolean full;

    Server() {
      super(SelectorProvider.provider());
    }

    @Override
    public SocketChannel accept() throws IOException {
      if (full) {
        throw new IOException(FULL);
      }
      return waiting.poll();
    }

    @Override
    public ServerSocketChannel bind(SocketAddress local, int backlog) {
      throw new UnsupportedOperationException();
    }

    @Override
    public <T> ServerSocketChannel setOption(SocketOption<T> name, T value) {
      throw new UnsupportedOperationException();
    }

    @Override
    public <T> T getOption(SocketOption<T> name) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
      return Set.of();
    }

    @Override
    public ServerSocket socket() {
      throw new UnsupportedOperationException();
    }

    @Override
    public SocketAddress getLocalAddress() {
      throw new UnsupportedOperationException();
    }

    @Override
    protected void implCloseSelectableChannel() {}

    @Override
    protected void implConfigureBlocking(boolean block) {}
  }

  /** A selector that selects nothing and only creates keys. */
  private static final class Keys extends AbstractSelector {
    Keys() {
      super(SelectorProvider.provider());
    }

    @Override
    protected SelectionKey register(AbstractSelectableChannel channel, int ops, Object attachment) {
      Key key = new Key(this, channel);
      key.attach(attachment);
      return key.interestOps(ops);
    }

    @Override
    protected void implCloseSelector() {}

    @Override
    public Set<SelectionKey> keys() {
      return Set.of();
    }

    @Override
    public Set<SelectionKey> selectedKeys() {
      return Set.of();
    }

    @Override
    public int selectNow() {
      return 0;
    }

    @Override
    public int select(long timeout) {
      return 0;
    }

    @Override
    public int select() {
      return 0;
    }

    @Override
    public Selector wakeup() {
      return this;
    }
  }

  private static final class Key extends SelectionKey {
    private final Keys selector;
    private final AbstractSelectableChannel channel;
    private volatile int ops;

    Key(Keys selector, AbstractSelectableChannel channel) {
      this.selector = selector;
      this.channel = channel;
    }

    @Override
    public AbstractSelectableChannel channel() {
      return channel;
    }

    @Override
    public Selector selector() {
      return selector;
    }

    @Override
    public boolean isValid() {
      return channel.isOpen();
    }

    @Override
    public void cancel() {}

    @Override
    public int interestOps() {
      return ops;
    }

    @Override
    public SelectionKey interestOps(int wanted) {
      ops = wanted;
      return this;
    }

    @Override
    public int readyOps() {
      return ops;
    }
  }

  /** A handler that keeps the warnings with a given text. */
  private static final class Warnings extends Handler {
    final List<String> found = new CopyOnWriteArrayList<>();
    private final String text;

    Warnings(String text) {
      this.text = text;
    }

    @Override
    public void publish(LogRecord logged) {
      if (logged.getMessage().contains(text) && logged.getLevel().equals(Level.WARNING)) {
        found.add(logged.getMessage());
      }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  }

  private final Server server = new Server();
  private final Keys keys = new Keys();

  /** A clock that a test sets. */
  private static final class SetTime extends ForwardingTime {
    final AtomicLong now = new AtomicLong();

    SetTime() {
      super(Time.SYSTEM);
    }

    @Override
    public long nanoTime() {
      return now.get();
    }
  }

  @Test
  void aFailureToAcceptIsLoggedOnceAndTriedAgainLater() throws Exception {
    Logger logger = Logger.getLogger(Transport.class.getName());
    Warnings warnings = new Warnings(FULL);
    SetTime time = new SetTime();
    logger.addHandler(warnings);
    try (FuzzedTransport peers = new FuzzedTransport(time)) {
      Listener listener = new Listener(peers.transport().pairs, keys, server);
      SelectionKey key = server.keyFor(keys);
      server.full = true;
      for (int i = 0; i < 3; i++) {
        peers.locked(
            () -> {
              listener.ready(key);
              assertThat(key.interestOps()).as("while there is a pause").isZero();
              time.now.addAndGet(99_000_000);
              assertThat(listener.resume()).isFalse();
              assertThat(listener.isPaused()).isTrue();
              time.now.addAndGet(1_000_000);
              assertThat(listener.resume()).isTrue();
              assertThat(listener.isPaused()).isFalse();
              assertThat(key.interestOps()).isEqualTo(SelectionKey.OP_ACCEPT);
            });
      }
      assertThat(warnings.found).hasSize(1).first().asString().contains("cannot accept");
      server.full = false;
      server.waiting.add(socket());
      peers.locked(() -> listener.ready(key));
      assertThat(server.waiting).isEmpty();
      server.full = true;
      peers.locked(() -> listener.ready(key));
      assertThat(warnings.found).hasSize(2);
      peers.locked(listener::close);
    } finally {
      logger.removeHandler(warnings);
    }
  }

  @Test
  void manyStrangersAreLoggedInAFewLines() throws Exception {
    Logger logger = Logger.getLogger(Transport.class.getName());
    Warnings warnings = new Warnings("it cannot be used");
    logger.addHandler(warnings);
    try (FuzzedTransport peers = new FuzzedTransport(new SetTime())) {
      Listener listener = new Listener(peers.transport().pairs, keys, server);
      for (int i = 0; i < 2000; i++) {
        server.waiting.add(socket());
      }
      int turns = 0;
      while (!server.waiting.isEmpty()) {
        peers.locked(() -> listener.ready(server.keyFor(keys)));
        turns++;
      }
      assertThat(turns).isEqualTo(8);
      assertThat(warnings.found).hasSizeBetween(3, 5);
      peers.locked(peers.transport().pairs.context.log::closeStrangers);
      assertThat(warnings.found.getLast()).matches(".*… 1,99\\d more.* in the last 0 s.*");
      peers.locked(listener::close);
    } finally {
      logger.removeHandler(warnings);
    }
  }

  private static ScriptedSocket socket() {
    return new ScriptedSocket(new SplittableRandom(1), new byte[0], End.SILENCE);
  }

  @Test
  void aConnectionThatCannotBeUsedIsClosedAndKeepsNoOtherWaiting() throws Exception {
    try (FuzzedTransport peers = new FuzzedTransport()) {
      Listener listener = new Listener(peers.transport().pairs, keys, server);
      ScriptedSocket first = socket();
      ScriptedSocket second = socket();
      server.waiting.addAll(List.of(first, second));
      peers.locked(() -> listener.ready(server.keyFor(keys)));
      assertThat(first.isOpen()).isFalse();
      assertThat(second.isOpen()).isFalse();
      assertThat(server.waiting).isEmpty();
      peers.locked(listener::close);
    }
  }
}
