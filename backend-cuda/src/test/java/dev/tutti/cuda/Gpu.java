package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.tutti.cuda.driver.CudaDriver;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Gives tests the GPU of this machine; as a condition, skips a class if there is no GPU. */
public final class Gpu implements ExecutionCondition {
  /** The name of a kernel that does nothing. */
  public static final String NOTHING = "nothing";

  /** The name of a kernel that adds a float to each float of an array: address, count, float. */
  public static final String ADD = "add";

  private static final String PTX =
      """
      .version 8.0
      .target sm_80
      .address_size 64
      .visible .entry nothing()
      {
        ret;
      }
      .visible .entry add(.param .u64 target, .param .u32 count, .param .f32 value)
      {
        .reg .pred %p1;
        .reg .b32 %r<6>;
        .reg .b64 %rd<5>;
        .reg .f32 %f<4>;
        ld.param.u64 %rd1, [target];
        ld.param.u32 %r1, [count];
        ld.param.f32 %f1, [value];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %tid.x;
        mad.lo.s32 %r5, %r2, %r3, %r4;
        setp.ge.u32 %p1, %r5, %r1;
        @%p1 bra DONE;
        cvta.to.global.u64 %rd2, %rd1;
        mul.wide.u32 %rd3, %r5, 4;
        add.s64 %rd4, %rd2, %rd3;
        ld.global.f32 %f2, [%rd4];
        add.f32 %f3, %f2, %f1;
        st.global.f32 [%rd4], %f3;
      DONE:
        ret;
      }
      \0\
      """;

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    return Cuda.unusableReason()
        .map(reason -> ConditionEvaluationResult.disabled("no GPU here: " + reason))
        .orElseGet(() -> ConditionEvaluationResult.enabled("there is a GPU"));
  }

  /** Loads the test kernels into a device's context, and enters that context. */
  public static long loadKernels(CudaDevice device) {
    device.context().enter();
    CudaDriver driver = device.context().driver();
    return driver.kernels().load(PTX.getBytes(US_ASCII));
  }
}
