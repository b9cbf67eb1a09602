package dev.tutti.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.classfile.AttributedElement;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.constantpool.ClassEntry;
import java.lang.classfile.constantpool.MemberRefEntry;
import java.lang.classfile.constantpool.MethodTypeEntry;
import java.lang.classfile.constantpool.NameAndTypeEntry;
import java.lang.classfile.constantpool.PoolEntry;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A graph of which top-level classes of Tutti name which others, according to their compiled code.
 */
final class ClassGraph {
  private static final Pattern NAME = Pattern.compile("L([\\w/$]+)[;<.]");
  private static final String OURS = "dev.tutti.";

  private final SortedMap<String, NavigableSet<String>> uses = new TreeMap<>();
  private final Map<String, String> modules = new HashMap<>();
  private final SortedMap<String, NavigableSet<String>> members = new TreeMap<>();

  /**
   * Reads the classes of a module.
   *
   * @param module the name of the module
   * @param anchor any class of the module
   */
  void read(String module, Class<?> anchor) throws Exception {
    Path place = Path.of(anchor.getProtectionDomain().getCodeSource().getLocation().toURI());
    if (Files.isDirectory(place)) {
      readFolder(module, place);
      return;
    }
    try (FileSystem jar = FileSystems.newFileSystem(place)) {
      readFolder(module, jar.getPath("/"));
    }
  }

  private void readFolder(String module, Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      files
          .filter(file -> file.toString().endsWith(".class"))
          .filter(file -> !file.endsWith("module-info.class"))
          .forEach(file -> readClass(module, file));
    }
  }

  private void readClass(String module, Path file) {
    try {
      ClassModel model = ClassFile.of().parse(Files.readAllBytes(file));
      String self = topLevel(model.thisClass().asInternalName());
      modules.put(self, module);
      NavigableSet<String> names = uses.computeIfAbsent(self, _ -> new TreeSet<>());
      for (PoolEntry entry : model.constantPool()) {
        switch (entry) {
          case MemberRefEntry e -> addMember(self, e);
          case ClassEntry e -> add(names, "L" + e.asInternalName() + ";");
          case NameAndTypeEntry e -> add(names, e.type().stringValue());
          case MethodTypeEntry e -> add(names, e.descriptor().stringValue());
          default -> {}
        }
      }
      model.fields().forEach(field -> add(names, field.fieldType().stringValue()));
      model.methods().forEach(method -> add(names, method.methodType().stringValue()));
      List<AttributedElement> generic = new ArrayList<>(model.fields());
      generic.addAll(model.methods());
      generic.add(model);
      for (AttributedElement element : generic) {
        element
            .findAttribute(Attributes.signature())
            .ifPresent(signature -> add(names, signature.signature().stringValue()));
      }
      names.remove(self);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void addMember(String self, MemberRefEntry entry) {
    members
        .computeIfAbsent(self, _ -> new TreeSet<>())
        .add(
            entry.owner().asInternalName().replace('/', '.')
                + "."
                + entry.name().stringValue()
                + entry.type().stringValue());
  }

  private static void add(Set<String> names, String descriptor) {
    Matcher found = NAME.matcher(descriptor);
    while (found.find()) {
      String name = topLevel(found.group(1));
      if (name.startsWith(OURS)) {
        names.add(name);
      }
    }
  }

  private static String topLevel(String internalName) {
    int dollar = internalName.indexOf('$');
    return (dollar < 0 ? internalName : internalName.substring(0, dollar)).replace('/', '.');
  }

  /** Returns all classes with the classes that they name. */
  SortedMap<String, NavigableSet<String>> uses() {
    return uses;
  }

  /**
   * Returns all classes with the methods and fields that they name, of any module: the owner, a
   * dot, the name and the descriptor.
   */
  SortedMap<String, NavigableSet<String>> members() {
    return members;
  }

  /** Returns the module of a class, or null if no module that was read contains it. */
  String moduleOf(String name) {
    return modules.get(name);
  }

  /** Returns the package of a class. */
  static String packageOf(String name) {
    return name.substring(0, name.lastIndexOf('.'));
  }

  /**
   * Returns the cycles among the owners of classes, the largest first.
   *
   * @param owner maps a class to what it belongs to: itself, or its package
   */
  List<NavigableSet<String>> circles(Function<String, String> owner) {
    SortedMap<String, NavigableSet<String>> edges = new TreeMap<>();
    uses.forEach(
        (name, used) -> {
          NavigableSet<String> to = edges.computeIfAbsent(owner.apply(name), _ -> new TreeSet<>());
          used.stream().filter(modules::containsKey).map(owner).forEach(to::add);
        });
    List<NavigableSet<String>> circles = new ArrayList<>();
    for (NavigableSet<String> part : new Components(edges).parts()) {
      if (part.size() > 1) {
        circles.add(part);
      }
    }
    circles.sort((a, b) -> b.size() - a.size());
    return circles;
  }

  /** The strongly connected components of a graph, found with Kosaraju's algorithm. */
  private record Components(SortedMap<String, NavigableSet<String>> edges) {
    List<NavigableSet<String>> parts() {
      List<String> order = new ArrayList<>();
      Set<String> seen = new HashSet<>();
      edges.keySet().forEach(start -> order.addAll(reached(start, edges, seen)));
      SortedMap<String, NavigableSet<String>> back = new TreeMap<>();
      edges.forEach(
          (from, all) ->
              all.forEach(to -> back.computeIfAbsent(to, _ -> new TreeSet<>()).add(from)));
      Set<String> taken = new HashSet<>();
      List<NavigableSet<String>> parts = new ArrayList<>();
      Collections.reverse(order);
      for (String start : order) {
        parts.add(new TreeSet<>(reached(start, back, taken)));
      }
      return parts;
    }

    /**
     * Returns the nodes that are reached and were not seen before, each after all that it leads to.
     */
    private static Collection<String> reached(
        String start, Map<String, NavigableSet<String>> edges, Set<String> seen) {
      List<String> done = new ArrayList<>();
      Deque<String> stack = new ArrayDeque<>();
      Set<String> open = new HashSet<>();
      stack.push(start);
      while (!stack.isEmpty()) {
        String at = stack.peek();
        if (seen.add(at)) {
          open.add(at);
          for (String next : edges.getOrDefault(at, Collections.emptyNavigableSet())) {
            if (!seen.contains(next)) {
              stack.push(next);
            }
          }
        } else {
          stack.pop();
          if (open.remove(at)) {
            done.add(at);
          }
        }
      }
      return done;
    }
  }
}
