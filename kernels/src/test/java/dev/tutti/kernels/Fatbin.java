package dev.tutti.kernels;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A reader of uncompressed CUDA fatbins: their members, and the kernels of each member with their
 * parameters.
 */
final class Fatbin {
  private static final int MAGIC = 0xBA55ED50;
  private static final int PTX = 1;
  private static final int KPARAM_INFO = 0x17;
  private static final int SIZED_ATTRIBUTE = 4;
  private static final Pattern PTX_ENTRY =
      Pattern.compile("\\.visible \\.entry (\\w+)\\(([^)]*)\\)");
  private static final Pattern PTX_PARAMETER =
      Pattern.compile("\\.param (?:\\.align \\d+ )?\\.[bu](\\d+) \\w+(?:\\[(\\d+)])?");

  /** A program for one architecture: machine code, or PTX for all later ones. */
  record Member(boolean ptx, int architecture, ByteBuffer bytes) {
    /** Returns the sizes of each kernel's parameters, in order. */
    Map<String, List<Integer>> kernels() {
      return ptx ? ptxKernels(text()) : elfKernels(bytes);
    }

    String text() {
      return US_ASCII.decode(bytes.duplicate()).toString().replace("\0", "").strip();
    }

    @Override
    public String toString() {
      return (ptx ? "compute_" : "sm_") + architecture;
    }
  }

  private Fatbin() {}

  static List<Member> members(byte[] image) {
    ByteBuffer all = ByteBuffer.wrap(image).order(ByteOrder.LITTLE_ENDIAN);
    if (all.getInt(0) != MAGIC) {
      throw new IllegalArgumentException("no fatbin");
    }
    List<Member> members = new ArrayList<>();
    int at = all.getShort(6);
    while (at < image.length) {
      int header = all.getInt(at + 4);
      int size = (int) all.getLong(at + 8);
      members.add(
          new Member(
              all.getShort(at) == PTX,
              all.getInt(at + 28),
              all.slice(at + header, size).order(ByteOrder.LITTLE_ENDIAN)));
      at += header + size;
    }
    return members;
  }

  /**
   * Returns the text of each kernel, without the parts that depend on the other kernels in the
   * file.
   */
  static Map<String, String> ptxBodies(String text) {
    String plain =
        text.replaceAll("//[^\n]*", "")
            .replaceAll("_INTERNAL_[0-9a-f]+_", "_")
            .replaceAll("_kernels_cu_[0-9a-f]{8}", "_")
            .replaceAll("\\$L__BB\\d+_", "L_")
            .replaceAll("\\s+", " ");
    Map<String, String> bodies = new TreeMap<>();
    for (String part : plain.split("\\.visible \\.entry ", -1)) {
      int parenthesis = part.indexOf('(');
      // The last kernel's text ends where function bodies begin, if there are any.
      int end = part.indexOf(".func ");
      if (part.startsWith("tutti_")) {
        bodies.put(
            part.substring(0, parenthesis), (end < 0 ? part : part.substring(0, end)).strip());
      }
    }
    return bodies;
  }

  private static Map<String, List<Integer>> ptxKernels(String text) {
    Map<String, List<Integer>> kernels = new TreeMap<>();
    Matcher entries = PTX_ENTRY.matcher(text);
    while (entries.find()) {
      List<Integer> sizes = new ArrayList<>();
      Matcher parameters = PTX_PARAMETER.matcher(entries.group(2));
      while (parameters.find()) {
        int bytes = Integer.parseInt(parameters.group(1)) / 8;
        String count = parameters.group(2);
        sizes.add(count == null ? bytes : bytes * Integer.parseInt(count));
      }
      kernels.put(entries.group(1), sizes);
    }
    return kernels;
  }

  private static Map<String, List<Integer>> elfKernels(ByteBuffer elf) {
    int sections = (int) elf.getLong(0x28);
    int count = elf.getShort(0x3c);
    int names = (int) elf.getLong(sections + 64 * elf.getShort(0x3e) + 24);
    Map<String, List<Integer>> kernels = new TreeMap<>();
    for (int i = 0; i < count; i++) {
      int section = sections + 64 * i;
      String name = textAt(elf, names + elf.getInt(section));
      if (name.startsWith(".nv.info.tutti_")) {
        int begin = (int) elf.getLong(section + 24);
        int size = (int) elf.getLong(section + 32);
        kernels.put(
            name.substring(".nv.info.".length()),
            elfParameters(elf.slice(begin, size).order(ByteOrder.LITTLE_ENDIAN)));
      }
    }
    return kernels;
  }

  private static List<Integer> elfParameters(ByteBuffer info) {
    Map<Integer, Integer> sizes = new TreeMap<>();
    int at = 0;
    while (at < info.limit()) {
      int length = info.get(at) == SIZED_ATTRIBUTE ? info.getShort(at + 2) : 0;
      if (info.get(at) == SIZED_ATTRIBUTE && info.get(at + 1) == KPARAM_INFO) {
        sizes.put((int) info.getShort(at + 8), info.getInt(at + 12) >>> 18);
      }
      at += 4 + length;
    }
    return List.copyOf(sizes.values());
  }

  private static String textAt(ByteBuffer elf, int at) {
    StringBuilder text = new StringBuilder();
    for (int i = at; elf.get(i) != 0; i++) {
      text.append((char) elf.get(i));
    }
    return text.toString();
  }
}
