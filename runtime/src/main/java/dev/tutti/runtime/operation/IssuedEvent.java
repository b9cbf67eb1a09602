package dev.tutti.runtime.operation;

import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.List;
import java.util.OptionalInt;

/** An operation that was issued. */
record IssuedEvent(
    long id,
    String group,
    int rank,
    OpType opType,
    long sequenceNumber,
    boolean isAsync,
    OptionalInt root,
    List<Tensor> inputs,
    List<Tensor> outputs)
    implements OpEvent {}
