package dev.tutti.store.tcp;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Why a server dropped the last clients, for when these ask; used by the event loop only. */
final class Refusals {
  private static final int MOST = 64;

  /** The reasons by the random bytes with which each client asked the capability question. */
  private final Map<ByteBuffer, byte[]> reasons = new LinkedHashMap<>();

  /** Keeps the reason for which a client was dropped, unless the client has shown no name. */
  void add(byte @Nullable [] name, String reason) {
    if (name == null) {
      return;
    }
    if (reasons.size() == MOST) {
      reasons.remove(reasons.keySet().iterator().next());
    }
    reasons.put(ByteBuffer.wrap(name), reason.getBytes(StandardCharsets.UTF_8));
  }

  /** Returns the last reason for which a client was dropped; its name if there is none. */
  byte[] of(byte[] name) {
    return reasons.getOrDefault(ByteBuffer.wrap(name), name);
  }
}
