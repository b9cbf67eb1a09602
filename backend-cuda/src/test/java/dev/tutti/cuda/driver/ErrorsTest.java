package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaException;
import org.junit.jupiter.api.Test;

class ErrorsTest {
  @Test
  void anErrorSaysWhatWasCalledAndWhatTheDriverCallsIt() {
    assertThatThrownBy(() -> Errors.check(2, "cuMemAlloc of 5 bytes"))
        .isInstanceOf(BackendException.class)
        .hasMessage("cuMemAlloc of 5 bytes failed: CUDA_ERROR_OUT_OF_MEMORY (2)")
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> {
              assertThat(e.call()).isEqualTo("cuMemAlloc of 5 bytes");
              assertThat(e.errorName()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
              assertThat(e.isOutOfMemory()).isTrue();
            });
    Errors.check(0, "cuInit");
    Errors.call("cuInit", () -> 0);
  }

  @Test
  void exceptionsOfJCudaBecomeOurs() {
    assertThatThrownBy(
            () ->
                Errors.call(
                    "cuMemFree",
                    () -> {
                      throw new jcuda.CudaException("CUDA_ERROR_ILLEGAL_ADDRESS");
                    }))
        .hasMessage("cuMemFree failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    assertThatThrownBy(
            () ->
                Errors.call(
                    "cuMemFree",
                    () -> {
                      throw new jcuda.CudaException("something");
                    }))
        .hasMessage("cuMemFree failed: CUDA_ERROR_UNKNOWN (999)");
  }

  @Test
  void aQueryTellsWorkThatIsNotDoneFromFailures() {
    assertThat(Errors.isDone(0, "cuEventQuery")).isTrue();
    assertThat(Errors.isDone(600, "cuEventQuery")).isFalse();
    assertThatThrownBy(() -> Errors.isDone(700, "cuEventQuery"))
        .hasMessage("cuEventQuery failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  }
}
