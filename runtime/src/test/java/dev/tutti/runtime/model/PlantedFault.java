package dev.tutti.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;

/** Runs an exploration with a fault in what it explores. */
public final class PlantedFault {
  private PlantedFault() {}

  /** Loads a package anew, and a class with a fault from a folder of its own. */
  private static final class Faulty extends URLClassLoader {
    private final String prefix;

    Faulty(String prefix, URL[] folders) {
      super(folders, PlantedFault.class.getClassLoader());
      this.prefix = prefix;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        if (loaded != null || !name.startsWith(prefix)) {
          return loaded != null ? loaded : super.loadClass(name, resolve);
        }
        return findClass(name);
      }
    }
  }

  /**
   * Where faults are planted.
   *
   * @param inPackage the package of the classes and of the exploration
   * @param explorer the class with the exploration, a static method without parameters
   */
  public record Place(String inPackage, String explorer) {
    /**
     * Compiles a class in which a text is replaced, and explores with it.
     *
     * @param how the method that explores
     * @param type the class
     * @param text the text, which is there once; each space stands for any white space
     * @param fault what replaces it
     * @param folder an empty folder
     * @throws java.lang.reflect.InvocationTargetException if the exploration finds something
     */
    public void run(String how, String type, String text, String fault, Path folder)
        throws Exception {
      Path sources = Path.of("src/main/java", inPackage.replace('.', '/'));
      String source = Files.readString(sources.resolve(type + ".java"));
      String spaced =
          Arrays.stream(text.split(" ")).map(Pattern::quote).collect(Collectors.joining("\\s+"));
      Matcher there = Pattern.compile(spaced).matcher(source);
      assertThat(there.results()).as("places of that text").hasSize(1);
      Path changed = folder.resolve(type + ".java");
      Files.writeString(changed, there.replaceAll(Matcher.quoteReplacement(fault)));
      String classPath = System.getProperty("java.class.path");
      int result =
          ToolProvider.findFirst("javac")
              .orElseThrow()
              .run(
                  System.out,
                  System.out,
                  "-proc:none",
                  "-cp",
                  classPath,
                  "-d",
                  folder.toString(),
                  changed.toString());
      assertThat(result).as("compiled").isZero();
      List<URL> folders = new ArrayList<>(List.of(folder.toUri().toURL()));
      for (String entry : classPath.split(File.pathSeparator)) {
        folders.add(new File(entry).toURI().toURL());
      }
      try (Faulty loader = new Faulty(inPackage + ".", folders.toArray(URL[]::new))) {
        Method explore = loader.loadClass(inPackage + "." + explorer).getDeclaredMethod(how);
        explore.setAccessible(true);
        explore.invoke(null);
      }
    }
  }
}
