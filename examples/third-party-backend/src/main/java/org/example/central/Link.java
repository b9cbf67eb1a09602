package org.example.central;

import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The connection that carries messages to and from one other rank: tag, number, type, length,
 * bytes.
 */
final class Link {
  /*
   * One thread writes the queued messages, so send() never blocks. Another reads all incoming
   * messages into the mailbox, so the peer's writer never waits for a receive. Both end when either
   * side closes the socket. A message that is queued when the writer ends, or later, fails: both
   * the writer, after setting its ended flag, and queue(), after adding a message, empty the queue.
   *
   * A send ends when its receiver has confirmed it by its number, which means that the receive has
   * begun. The receive ends once the confirmation has been handed to the operating system, since
   * its rank may close after that. Sends that are unconfirmed when the reader ends, or later, fail.
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Message(
      int tag, int number, String type, byte[] bytes, CompletableFuture<Void> written) {}

  /** The tag of a confirmation; parts of collectives use {@link Mailbox#COLLECTIVES}. */
  private static final int CONFIRMATION = -2;

  private final Socket socket;
  private final int rank;
  private final int peer;
  private final Mailbox mailbox;
  private final BlockingQueue<Message> queue = new LinkedBlockingQueue<>();
  private final Map<Integer, Operation> unconfirmed = new ConcurrentHashMap<>();
  private final AtomicInteger sends = new AtomicInteger();
  private final Thread writer;
  private final Thread reader;
  private volatile boolean ended;
  private volatile boolean readerEnded;

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

  /** Sends a message; the operation ends when a receive of the peer has taken it. */
  void send(Operation op, int tag, String type, byte[] bytes) {
    int number = sends.incrementAndGet();
    unconfirmed.put(number, op);
    CompletableFuture<Void> _ =
        queue(tag, number, type, bytes)
            .whenComplete(
                (_, failure) -> {
                  if (failure != null) {
                    op.fail(failure, peer);
                  }
                });
    if (readerEnded) {
      failUnconfirmed();
    }
  }

  /**
   * Sends a part of a collective; the future ends when the part has been handed to the operating
   * system, or is lost.
   */
  CompletableFuture<Void> sendPart(byte[] bytes) {
    return queue(Mailbox.COLLECTIVES, 0, "", bytes);
  }

  /** Notifies the peer that a receive took its message; the future ends like that of a part. */
  private CompletableFuture<Void> confirm(int number) {
    return queue(CONFIRMATION, number, "", new byte[0]);
  }

  private CompletableFuture<Void> queue(int tag, int number, String type, byte[] bytes) {
    Message message = new Message(tag, number, type, bytes, new CompletableFuture<>());
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
          out.writeInt(message.number);
          out.writeUTF(message.type);
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
        int number = in.readInt();
        String type = in.readUTF();
        int length = in.readInt();
        byte[] bytes = length < 0 ? new byte[0] : in.readNBytes(length);
        if (bytes.length != length) {
          throw new EOFException("expected " + length + " bytes, got " + bytes.length);
        }
        if (tag == CONFIRMATION) {
          Operation op = unconfirmed.remove(number);
          if (op != null) {
            op.complete();
          }
        } else {
          mailbox.deliver(new Mailbox.Message(peer, tag, type, bytes, () -> confirm(number)));
        }
      }
    } catch (IOException e) {
      readerEnded = true;
      failUnconfirmed();
      mailbox.lose(gone(e));
    }
  }

  private void failUnconfirmed() {
    for (Integer number : List.copyOf(unconfirmed.keySet())) {
      Operation op = unconfirmed.remove(number);
      if (op != null) {
        op.fail(gone(null), peer);
      }
    }
  }

  private PeerLostException gone(@Nullable Throwable cause) {
    return new PeerLostException(
        peer, "the connection from rank " + rank + " to rank " + peer + " ended", cause);
  }
}
