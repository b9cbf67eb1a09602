package dev.tutti.contracts;

import org.junit.jupiter.api.TestInstance;

/**
 * A part of {@link ProcessGroupContract} that can run by itself: a test class implements the part
 * and {@link #subject()}.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
public interface GroupContract {
  /** Returns the subject of the tests. */
  ContractSubject subject();
}
