package dev.tutti.runtime.rendezvous;

import dev.tutti.Store;
import dev.tutti.store.PrefixStore;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The keys that this rank wrote for the groups that one call makes. */
public final class WrittenKeys {
  /*
   * A rank that has left these groups appends its keys to a list in the store, and then counts
   * itself. So the rank that counts last finds the keys of all ranks in the list, and no rank reads
   * them any more: it deletes them, and no other rank waits for that. All ranks that took part in
   * the call count, also those that are in none of its groups, since each reads keys of the others
   * before the call returns. If one of them never counts, because it failed or keeps its group, all
   * keys stay. Keys are kept with all their prefixes, since they are below several.
   */
  /** The most keys that are noted, so that a backend that writes for ever fills no memory. */
  private static final int MOST = 1000;

  private final Store job;
  private final String counter;
  private final int ranks;
  private final Set<String> keys = ConcurrentHashMap.newKeySet();

  /**
   * Creates an empty list of keys.
   *
   * @param job the store of this job, for the list and the count
   * @param name the name of the call, the same on all ranks that take part in it
   * @param ranks how many ranks take part in the call
   */
  public WrittenKeys(Store job, String name, int ranks) {
    this.job = job;
    this.counter = "closed/" + name;
    this.ranks = ranks;
  }

  /** Notes a key that this rank wrote; may be called from any thread. */
  public void add(Store store, String key) {
    if (keys.size() < MOST) {
      keys.add(below(store, key));
    }
  }

  /** Notes that a key is no longer there; may be called from any thread. */
  void remove(Store store, String key) {
    keys.remove(below(store, key));
  }

  /**
   * Counts this rank as one that no longer needs the keys; the last rank deletes those of all.
   *
   * @throws dev.tutti.StoreException if the store fails
   */
  public void release() {
    if (ranks == 1) {
      delete(keys);
      return;
    }
    String list = counter + "/keys";
    job.append(list, encode(keys));
    if (job.add(counter, 1) == ranks) {
      delete(decode(job.get(list)));
      boolean _ = job.deleteKey(list);
      boolean _ = job.deleteKey(counter);
    }
  }

  private void delete(Set<String> written) {
    Store bottom = job;
    while (bottom instanceof PrefixStore view) {
      bottom = view.store();
    }
    written.forEach(bottom::deleteKey);
  }

  private static String below(Store store, String key) {
    StringBuilder whole = new StringBuilder(key);
    for (Store next = store; next instanceof PrefixStore view; next = view.store()) {
      whole.insert(0, view.prefix() + '/');
    }
    return whole.toString();
  }

  private static byte[] encode(Set<String> keys) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      for (String key : keys) {
        out.writeUTF(key);
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return bytes.toByteArray();
  }

  private static Set<String> decode(byte[] list) {
    Set<String> keys = new LinkedHashSet<>();
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(list))) {
      while (in.available() > 0) {
        keys.add(in.readUTF());
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return keys;
  }
}
