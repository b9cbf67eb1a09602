package dev.tutti.cli.reference;

import dev.tutti.Incubating;
import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.constant.ClassDesc;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The public signatures of the packages that modules export to all others. */
final class PublicApi {
  /** Packages of types, and modifiers that promise nothing. */
  private static final Pattern OMITTED =
      Pattern.compile(
          "\\b(?:[a-z]\\w*\\.)+(?=[A-Z])|\\b(?:synchronized|native|volatile|transient) ");

  private static final Pattern TOP_LEVEL = Pattern.compile("(.*/)([^/$-]+)\\.class");
  private static final ClassDesc INCUBATING = ClassDesc.of(Incubating.class.getName());

  private final SortedSet<String> lines = new TreeSet<>();
  private final Set<String> exported = new HashSet<>();

  /** Returns a line for each visible type and member of the modules that have the given types. */
  static SortedSet<String> of(List<String> types) throws Exception {
    PublicApi api = new PublicApi();
    List<ModuleReference> modules = new ArrayList<>();
    for (String type : types) {
      modules.add(moduleOf(Class.forName(type)));
    }
    for (ModuleReference module : modules) {
      module.descriptor().exports().stream()
          .filter(exports -> !exports.isQualified())
          .forEach(exports -> api.exported.add(exports.source()));
    }
    for (ModuleReference module : modules) {
      api.add(module);
    }
    return api.lines;
  }

  private static ModuleReference moduleOf(Class<?> type) throws Exception {
    Path place = Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
    return ModuleFinder.of(place).findAll().iterator().next();
  }

  private void add(ModuleReference module) throws Exception {
    try (ModuleReader reader = module.open();
        Stream<String> files = reader.list()) {
      for (String file : files.toList()) {
        var name = TOP_LEVEL.matcher(file);
        if (name.matches() && exported.contains(packageOf(name.group(1)))) {
          boolean incubating =
              isIncubating(reader, file)
                  || isIncubating(reader, name.group(1) + "package-info.class");
          String binary = (name.group(1) + name.group(2)).replace('/', '.');
          add(Class.forName(binary, false, PublicApi.class.getClassLoader()), incubating);
        }
      }
    }
  }

  private static String packageOf(String folder) {
    return folder.substring(0, folder.length() - 1).replace('/', '.');
  }

  private static boolean isIncubating(ModuleReader reader, String file) throws IOException {
    try (InputStream in = reader.open(file).orElse(InputStream.nullInputStream())) {
      byte[] bytes = in.readAllBytes();
      return bytes.length > 0
          && ClassFile.of()
              .parse(bytes)
              .findAttribute(Attributes.runtimeInvisibleAnnotations())
              .stream()
              .flatMap(attribute -> attribute.annotations().stream())
              .anyMatch(annotation -> annotation.classSymbol().equals(INCUBATING));
    }
  }

  private void add(Class<?> type, boolean incubating) {
    if (!isVisible(type.getModifiers())) {
      return;
    }
    String above =
        Stream.concat(
                Stream.ofNullable(type.getGenericSuperclass()).filter(t -> t != Object.class),
                Arrays.stream(type.getGenericInterfaces()))
            .map(Type::getTypeName)
            .collect(Collectors.joining(", "));
    String mark = incubating ? "@Incubating " : "";
    put(type, mark + type.toGenericString() + (above.isEmpty() ? "" : " : " + above));
    boolean isFinal = Modifier.isFinal(type.getModifiers());
    membersOf(type)
        .filter(member -> isVisible(member.getModifiers()) && !member.isSynthetic())
        .filter(member -> !isFinal || Modifier.isPublic(member.getModifiers()))
        .forEach(member -> put(type, mark + textOf(member)));
    for (Class<?> nested : type.getDeclaredClasses()) {
      add(nested, incubating);
    }
  }

  /** Returns the members of a type, with those it has from hidden superclasses. */
  private Stream<Member> membersOf(Class<?> type) {
    Stream<Member> own =
        Stream.of(
                type.getDeclaredConstructors(), type.getDeclaredFields(), type.getDeclaredMethods())
            .flatMap(Arrays::stream);
    Class<?> above = type.getSuperclass();
    return above == null || !isHidden(above)
        ? own
        : Stream.concat(own, membersOf(above).filter(m -> !(m instanceof Constructor)));
  }

  private boolean isHidden(Class<?> type) {
    return !Modifier.isPublic(type.getModifiers())
        || (type.getName().startsWith("dev.tutti.") && !exported.contains(type.getPackageName()));
  }

  private void put(Class<?> type, String text) {
    lines.add(type.getName() + ": " + OMITTED.matcher(text).replaceAll(""));
  }

  private static boolean isVisible(int modifiers) {
    return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
  }

  private static String textOf(Member member) {
    return member instanceof Field field
        ? field.toGenericString()
        : ((Executable) member).toGenericString();
  }
}
