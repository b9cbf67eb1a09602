#!/usr/bin/env bash
# Runs test classes, and builds what they need. They run in all sizes of the full tier, without its checks.
#
#   ./t CLASS[#METHOD]... [OPTION...]
#
# CLASS may name its package, or have a * in it; OPTIONs begin with - and go to Maven.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
tests=() options=()
for argument; do
  case $argument in
    -*) options+=("$argument") ;;
    *) tests+=("$argument") ;;
  esac
done
((${#tests[@]})) || {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}

# Prints the test classes that fit a pattern for find, as files.
sources() {
  find . -name target -prune -o -path "*/src/test/java*$1.java" -print
}

# Prints the five names nearest to a class: those that contain it, then those with the fewest letters to change.
similar() {
  sources "Test" | sed 's|.*/||; s|\.java$||' | sort -u | awk -v wanted="$1" '
    function min(a, b) { return a < b ? a : b }
    function distance(a, b,    i, j, row, left, above) {
      for (j = 0; j <= length(b); j++) row[j] = j
      for (i = 1; i <= length(a); i++) {
        left = row[0]
        row[0] = i
        for (j = 1; j <= length(b); j++) {
          above = row[j]
          row[j] = min(left + (substr(a, i, 1) != substr(b, j, 1)), 1 + min(row[j], row[j - 1]))
          left = above
        }
      }
      return row[length(b)]
    }
    BEGIN { wanted = tolower(wanted) }
    {
      far = index(tolower($0), wanted) ? 0 : distance(wanted, tolower($0))
      if (far <= length(wanted) / 3) print far, $0
    }' | sort -n | head -n 5 | cut -d ' ' -f 2 | paste -sd ' ' | sed 's/ /, /g'
}

declare -A modules=()
for test in "${tests[@]}"; do
  class=${test%%#*}
  mapfile -t files < <(sources "/${class//.//}")
  if ((${#files[@]} == 0)); then
    near=$(similar "${class##*.}")
    echo "no test class is named $class${near:+; similar: $near}" >&2
    exit 2
  fi
  for file in "${files[@]#./}"; do
    modules[${file%%/src/test/*}]=1
  done
done
shopt -s nullglob
reports() { # TEST
  local class=${1%%#*} module file
  for module in "${!modules[@]}"; do
    # Not quoted: the name of a class may be a pattern.
    for file in "$module"/target/surefire-reports/*.${class##*.}{,\$*}.txt; do
      echo "$file"
    done
  done
}
for test in "${tests[@]}"; do
  reports "$test" | xargs -r -d '\n' rm -f
done
standard=$(sed -n '/<modules>/,/<\/modules>/p; /<\/modules>/q' pom.xml)
for module in "${!modules[@]}"; do
  [[ $standard == *"<module>$module</module>"* ]] || options=(-Pfull "${options[@]}")
done
join() {
  local IFS=,
  echo "$*"
}
mvn test -pl "$(join "${!modules[@]}")" -am "-Dtest=$(join "${tests[@]}")" -Dsurefire.failIfNoSpecifiedTests=false \
  -Dtutti.tier=full -Dtest.excludedTags= "${options[@]}"
red=0
for test in "${tests[@]}"; do
  reports "$test" | xargs -r -d '\n' cat | awk -F '[:,]' -v test="$test" '
    /^Tests run/ { run += $2; skipped += $8 }
    END {
      if (!run) { print "no test ran: " test; exit 1 }
      print test ": " run " tests" (skipped ? ", of which " skipped + 0 " were skipped" : "")
    }' || red=1
done
exit "$red"
