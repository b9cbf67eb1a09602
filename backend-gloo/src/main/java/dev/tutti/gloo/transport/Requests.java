package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The requests of a transport: spare ones, those that wait for any rank, and ended ones whose users
 * are still to be notified. All methods require the transport's lock.
 */
final class Requests {
  private final ProgressEngine progress;
  private final TransportLog log;
  private final List<Request> anyReceives = new ArrayList<>();
  private final RequestQueue finished = new RequestQueue();
  private @Nullable Request free;
  private int userRequests;
  private int detached;
  private @Nullable Throwable detachedError;

  Requests(ProgressEngine progress, TransportLog log) {
    this.progress = progress;
    this.log = log;
  }

  Request obtain(boolean sends, int peer, long slot, @Nullable Operation operation) {
    Request request = free;
    if (request == null) {
      request = new Request();
    } else {
      free = request.next;
    }
    request.set(sends, peer, slot, operation);
    if (operation != null) {
      userRequests++;
    }
    return request;
  }

  void recycle(Request request) {
    request.clear();
    request.next = free;
    free = request;
  }

  boolean hasUserRequests() {
    return userRequests > 0;
  }

  void addAny(Request request) {
    anyReceives.add(request);
  }

  @Nullable Request takeAny(long slot) {
    for (int i = 0; i < anyReceives.size(); i++) {
      if (anyReceives.get(i).slot == slot) {
        return anyReceives.remove(i);
      }
    }
    return null;
  }

  void failAny(Throwable cause) {
    for (Request request : anyReceives) {
      end(request, cause);
    }
    anyReceives.clear();
  }

  /** Ends a request, successfully if there is no error. */
  void end(Request request, @Nullable Throwable error) {
    Request.Owner owner = request.owner;
    if (owner != null) {
      request.owner = null;
      owner.ended();
    }
    request.error = error;
    request.state = error == null ? Request.DONE : Request.FAILED;
    if (request.operation != null) {
      finished.add(request);
    } else if (request.detached) {
      detached--;
      if (error != null && detachedError == null) {
        detachedError = error;
      }
      recycle(request);
    }
    progress.wakeCallers();
  }

  /** Marks a request as one that nobody waits for individually. */
  void detach(Request request) {
    request.detached = true;
    detached++;
  }

  /** Returns whether all detached requests have ended, or one has failed. */
  boolean areDetachedOver() {
    return detached == 0 || detachedError != null;
  }

  /** Returns why a detached request failed, or null if none has. */
  @Nullable Throwable detachedError() {
    return detachedError;
  }

  /**
   * Ends the user operations whose requests have ended. Releases the lock meanwhile, because
   * operations take locks of their own.
   *
   * @return whether there were any
   */
  boolean deliver() {
    boolean any = false;
    for (Request request = finished.poll(); request != null; request = finished.poll()) {
      any = true;
      userRequests--;
      Operation operation = request.operation;
      Throwable error = request.error;
      boolean sends = request.sends;
      int peer = request.peer;
      recycle(request);
      if (operation != null) {
        progress.lock.unlock();
        try {
          tell(operation, error, sends, peer);
        } finally {
          progress.lock.lock();
          progress.wakeCallers();
        }
      }
    }
    return any;
  }

  private void tell(Operation operation, @Nullable Throwable error, boolean sends, int peer) {
    try {
      if (error != null) {
        operation.fail(error, error instanceof PeerLostException lost ? lost.peer() : -1);
      } else if (sends) {
        operation.complete();
      } else {
        operation.completeFrom(peer);
      }
    } catch (RuntimeException e) {
      log.warn("cannot report the end of an operation", e);
    }
  }
}
