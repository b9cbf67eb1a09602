package org.example.central;

import dev.tutti.spi.PeerLostException;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/** Carries messages to and from one other rank: tag, length, bytes. */
final class Link {
  /*
   * One thread writes what is queued, so that send() never blocks; another reads all that comes into
   * the mailbox, so that the peer's writer never waits for a receive. Both end when the socket is
   * closed, by either side. A message that is queued when the writer ends, or later, fails: both the
   * writer, after it said that it ended, and send(), after it queued, empty the queue.
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Message(int tag, byte[] bytes, CompletableFuture<Void> written) {}

  private final Socket socket;
  private final int rank;
  private final int peer;
  private final Mailbox mailbox;
  private final BlockingQueue<Message> queue = new LinkedBlockingQueue<>();
  private final Thread writer;
  private final Thread reader;
  private volatile boolean ended;

  Link(Socket socket, String group, int rank, int peer, Mailbox mailbox) {
    this.socket = socket;
    this.rank = rank;
    this.peer = peer;
    this.mailbox = mailbox;
    String name = "central-" + group + "-" + rank + "-" + peer;
    this.writer = Thread.ofPlatform().daemon().name(name + "-w").unstarted(this::write);
    this.reader = Thread.ofPlatform().daemon().name(name + "-r").unstarted(this::read);
  }

  void start() {
    writer.start();
    reader.start();
  }

  /** Queues a message; the future ends when its bytes are with the operating system, or lost. */
  CompletableFuture<Void> send(int tag, byte[] bytes) {
    Message message = new Message(tag, bytes, new CompletableFuture<>());
    queue.add(message);
    if (ended) {
      failQueued();
    }
    return message.written;
  }

  /** Ends both threads; never blocks. */
  void close() {
    try {
      socket.close();
    } catch (IOException e) {
      mailbox.lose(gone(e));
    }
    writer.interrupt();
  }

  private void write() {
    try (DataOutputStream out =
        new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()))) {
      while (true) {
        Message message = queue.take();
        try {
          out.writeInt(message.tag);
          out.writeInt(message.bytes.length);
          out.write(message.bytes);
          out.flush();
          message.written.complete(null);
        } catch (IOException e) {
          message.written.completeExceptionally(gone(e));
          throw e;
        }
      }
    } catch (IOException | InterruptedException e) {
      ended = true;
      failQueued();
    }
  }

  private void failQueued() {
    for (Message message = queue.poll(); message != null; message = queue.poll()) {
      message.written.completeExceptionally(gone(null));
    }
  }

  private void read() {
    try (DataInputStream in =
        new DataInputStream(new BufferedInputStream(socket.getInputStream()))) {
      while (true) {
        int tag = in.readInt();
        int length = in.readInt();
        byte[] bytes = length < 0 ? new byte[0] : in.readNBytes(length);
        if (bytes.length != length) {
          throw new EOFException("expected " + length + " bytes, got " + bytes.length);
        }
        mailbox.deliver(peer, tag, bytes);
      }
    } catch (IOException e) {
      mailbox.lose(gone(e));
    }
  }

  private PeerLostException gone(@Nullable Throwable cause) {
    return new PeerLostException(
        peer, "the connection from rank " + rank + " to rank " + peer + " ended", cause);
  }
}
