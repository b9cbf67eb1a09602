package dev.tutti.checkpoint.format;

import dev.tutti.DType;
import java.util.Optional;

/**
 * A tensor in a safetensors file.
 *
 * @param name its key
 * @param type safetensors' name of the element type, such as {@code BF16}
 * @param dtype the element type, or empty if tensors cannot have it
 * @param shape the sizes in elements, outermost first
 * @param start the position of the first byte in the file
 * @param byteSize the number of bytes
 */
public record StoredTensor(
    String name, String type, Optional<DType> dtype, Shape shape, long start, long byteSize) {}
