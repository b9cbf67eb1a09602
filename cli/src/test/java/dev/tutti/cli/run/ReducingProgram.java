package dev.tutti.cli.run;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.Tensor;
import dev.tutti.aeron.AeronStore;
import java.io.IOException;

/**
 * A rank that reduces until that fails, and then queries the store. It prints READY, FAILED with
 * the rank to blame and the message, and STORE with the outcome of the query. It stays until its
 * input ends; a rank that has not failed yet would otherwise blame it for being gone.
 */
final class ReducingProgram {
  private ReducingProgram() {}

  public static void main(String[] args) throws IOException {
    int port = Integer.parseInt(System.getenv("MASTER_PORT"));
    try (ProcessGroup group = ProcessGroup.init();
        Store store = new AeronStore("127.0.0.1", port)) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, Integer.parseInt(args[0]));
      group.allReduce(tensor);
      System.out.println("READY");
      try {
        while (true) {
          group.allReduce(tensor);
        }
      } catch (CollectiveException e) {
        System.out.println("FAILED " + e.failedRank().orElse(-1) + " " + e.getMessage());
      }
      try {
        System.out.println("STORE " + store.add("asked", 1));
      } catch (StoreException e) {
        System.out.println("STORE " + e.getMessage());
      }
      System.in.readAllBytes();
    }
  }
}
