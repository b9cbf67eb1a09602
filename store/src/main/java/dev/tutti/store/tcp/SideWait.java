package dev.tutti.store.tcp;

import dev.tutti.StoreException;
import dev.tutti.store.table.Arguments;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A call that waits at the server for other ranks, on a side connection of its own. */
final class SideWait implements AutoCloseable {
  /*
   * The server ends a wait with the single byte STOP_WAITING, followed by what the query adds. To
   * give up, the client sends CANCEL_WAIT, which is always answered with WAIT_CANCELED; a
   * STOP_WAITING that was already on its way arrives first, with what it adds, and counts. If the
   * server does not answer the cancellation soon, the connection is closed, which cancels the wait
   * as well.
   */
  private final TcpClient client;
  private final TcpClient.Request request;
  private final TcpConnection side;
  private boolean pending;
  private boolean canceled;
  private boolean broken = true;
  private @Nullable DeadlineException silence;

  private SideWait(TcpClient client, TcpClient.Request request, TcpConnection side) {
    this.client = client;
    this.request = request;
    this.side = side;
  }

  /**
   * Sends a request that waits; sending takes at most the given time, or a second if that is
   * longer.
   */
  static SideWait start(TcpClient client, TcpClient.Request request, long nanos) {
    SideWait wait = new SideWait(client, request, client.borrow(nanos));
    try {
      wait.send(nanos);
      return wait;
    } catch (StoreException e) {
      wait.close();
      throw e;
    }
  }

  /**
   * Waits until the server ends the wait, and reads the data that follows.
   *
   * @param result reads the data that follows the byte that ends the wait
   * @param nanos the time-out
   * @param readNanos the minimum time for reading the data if the wait ended just before the
   *     time-out
   * @param beforeCancel runs at the deadline while the server still counts this call as waiting
   * @return the data read, or null if the deadline came first
   */
  static <T> @Nullable T await(
      TcpClient client,
      TcpClient.Request request,
      TcpClient.Exchange<T> result,
      long nanos,
      long readNanos,
      Runnable beforeCancel) {
    long deadline = Arguments.deadline(client.time(), nanos);
    try (SideWait wait = start(client, request, nanos)) {
      StoreException interrupt = null;
      boolean came = false;
      try {
        came = wait.answered(deadline);
      } catch (StoreException e) {
        if (wait.broken) {
          throw e;
        }
        interrupt = e;
      }
      if (!came) {
        if (interrupt == null) {
          beforeCancel.run();
        }
        came = wait.cancel();
      }
      if (wait.silence != null) {
        throw client.failure(wait.silence);
      }
      if (came) {
        return wait.read(result, Math.max(deadline - client.time().nanoTime(), readNanos));
      }
      if (interrupt != null) {
        throw interrupt;
      }
      return null;
    }
  }

  /** Sends the request again, after an answer. */
  void send(long nanos) {
    broken = true;
    try {
      request.put(side.out);
      side.send(client.graceful(nanos));
      pending = true;
      broken = false;
    } catch (IOException e) {
      throw client.failure(e);
    }
  }

  /**
   * Waits for the end of the wait.
   *
   * @return whether the end came before the deadline
   * @throws StoreException if the thread is interrupted, which does not end the wait, or the
   *     connection is lost
   */
  boolean answered(long deadline) {
    try {
      stopped(side.readAnswer(deadline));
      return true;
    } catch (DeadlineException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException(
          "interrupted while waiting for the store server at " + client.server(), e);
    } catch (IOException e) {
      broken = true;
      throw client.failure(e);
    }
  }

  /** Gives up; returns whether the server ended the wait before it saw the cancellation. */
  private boolean cancel() {
    long deadline = client.graceDeadline();
    canceled = true;
    pending = false;
    try {
      side.out.putByte((byte) Wire.CANCEL_WAIT);
      side.send(deadline);
      byte answer = side.readByte(deadline);
      if (answer == Wire.WAIT_CANCELED) {
        canceled = false;
        return false;
      }
      stopped(answer);
      return true;
    } catch (IOException e) {
      broken = true;
      silence = e instanceof DeadlineException silent ? silent : null;
      return false;
    }
  }

  private <T> T read(TcpClient.Exchange<T> result, long nanos) {
    broken = true;
    try {
      T value = result.run(side, Arguments.deadline(client.time(), nanos));
      if (canceled) {
        expectCanceled();
      }
      broken = false;
      return value;
    } catch (IOException e) {
      throw client.failure(e);
    }
  }

  private void stopped(byte answer) throws IOException {
    if (answer != Wire.STOP_WAITING) {
      throw new IOException("the store server ended a wait with the unexpected answer " + answer);
    }
    pending = false;
  }

  private void expectCanceled() throws IOException {
    canceled = false;
    byte answer = side.readByte(client.graceDeadline());
    if (answer != Wire.WAIT_CANCELED) {
      throw new IOException(
          "the store server answered a cancellation with the unexpected answer " + answer);
    }
  }

  /** Cancels the wait if it has not ended, and returns the connection. */
  @Override
  public void close() {
    if (pending && !broken && cancel()) {
      try {
        expectCanceled();
      } catch (IOException e) {
        broken = true;
      }
    }
    client.pool().release(side, !broken && !canceled);
  }
}
