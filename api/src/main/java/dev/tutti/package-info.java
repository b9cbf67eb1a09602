/**
 * The API for programs: process groups, tensors, works, stores and their exceptions.
 *
 * <p>Begin with {@link dev.tutti.ProcessGroup}: join one, and call its collectives with a {@link
 * dev.tutti.Tensor}. {@link dev.tutti.GroupOptions} says how to join where the environment does
 * not, {@link dev.tutti.CallOptions} makes a call asynchronous, and {@link dev.tutti.Work} is what
 * an asynchronous call returns.
 *
 * {@snippet file="GroupSnippetsTest.java" region="group"}
 *
 * <p><b>Implementing the interfaces.</b> Only Tutti implements {@link dev.tutti.ProcessGroup},
 * {@link dev.tutti.Work}, {@link dev.tutti.Batch} and {@link dev.tutti.spi.Operation}: a minor
 * release may add abstract methods to them. Others may implement {@link dev.tutti.Store}, {@link
 * dev.tutti.Codec}, {@link dev.tutti.GroupListener}, {@link dev.tutti.SymmetricMemory}, {@link
 * dev.tutti.StreamBlock} and the interfaces in {@link dev.tutti.spi}: methods that a minor release
 * adds to those have defaults.
 *
 * <p>Enums may grow in a minor release, so a {@code switch} over one needs a default branch. The
 * contract suites of {@code dev.tutti.contracts} may grow as well. Anything marked {@link
 * dev.tutti.Incubating} may change in any release.
 */
@NullMarked
package dev.tutti;

import org.jspecify.annotations.NullMarked;
