# Sorts sources into bundles; each bundle is compiled as one source. Prints a line `bundle:file` for each file.
#
#   awk -v most=70000 -f src/bundles.awk layers/norm.cpp … tests/refused.hpp …       layers-1:layers/norm.cpp …
#
# The compiler spends most of its time on headers and templates, not on the sources themselves. A bundle reads the headers once for
# up to `most` characters of sources from one folder. Sources that include the JSON or TOML parser, 3 s and more each,
# go into separate bundles. Files that define the same name in anonymous namespaces go into different bundles, so a file
# need not avoid names used elsewhere. A file with `using namespace` is compiled alone, because the other files of a bundle
# would see those names too. Tests of all folders share bundles, and may have `using namespace chorale`. A test that opens
# another namespace shares bundles only with tests that open the same one. A test that defines a name shares no bundle with
# a test whose headers declare this name, unless its own headers declare the name too.
function kind_of(file) {
  match(file, /^src\/[a-z]+/) || match(file, /^[a-z]+/)
  kind = substr(file, 1, RLENGTH) opened[file]
  if (parses[file]) return (kind ~ /^(experiments|tests)/ ? kind : "library") "_parsers"
  # Each of these has a namespace named after a function.
  if (file ~ /^collectives\/(all_|barrier|broadcast|gather|reduce|scatter|forecast|schedule\/algorithms)/) kind = "algorithms"
  sub("/", "_", kind)
  return kind
}

# The name that a line at the left margin defines: `constexpr int most = 8;`, `class Picture final : Drawing {`,
# `std::string text_of(int x) {`. Macros such as TEST_CASE( generate their own names.
function name_in(line) {
  sub(/^\[\[[a-z]+\]\] /, "", line)
  gsub(/::/, "", line)
  sub(/ *[({=;:\[].*/, "", line)
  sub(/ final$/, "", line)
  sub(/.*[^A-Za-z0-9_]/, "", line)
  return line
}

# Among the names that some source hides, notes those that the headers of a file declare.
function read_headers(file, from,    i, k, header) {
  for (i = 1; i <= includes[from]; ++i) {
    header = included[from, i]
    if ((file, header) in reached) continue
    reached[file, header] = 1
    for (k = 1; k <= declares[header]; ++k)
      if (!((file, declared[header, k]) in sees)) {
        sees[file, declared[header, k]] = 1
        seen[file, ++sights[file]] = declared[header, k]
      }
    read_headers(file, header)
  }
}

function note(name, means) {
  if (name == "") return
  local[FILENAME, ++locals[FILENAME]] = name
  hides[name] = 1
  meaning[FILENAME, locals[FILENAME]] = means
}

function fits(bundle, file,    i) {
  if (filled[bundle] + size[file] > most) return 0
  for (i = 1; i <= locals[file]; ++i) {
    if ((bundle, local[file, i]) in taken && taken[bundle, local[file, i]] != meaning[file, i]) return 0
    if ((bundle, local[file, i]) in sees && !((file, local[file, i]) in sees)) return 0
  }
  for (i = 1; i <= sights[file]; ++i)
    if ((bundle, seen[file, i]) in taken && !((bundle, seen[file, i]) in sees)) return 0
  return 1
}

/^#include "/ { included[FILENAME, ++includes[FILENAME]] = substr($2, 2, length($2) - 2) }
FILENAME ~ /\.hpp$/ {
  if (/^[A-Za-z[]/ && (name = name_in($0)) in hides) declared[FILENAME, ++declares[FILENAME]] = name
  next
}
FNR == 1 { files[++n] = FILENAME; hidden = 0 }
{ size[FILENAME] += length($0) + 1 }
/^#include .*(json\.hpp|toml\.hpp|ds_config\.hpp|bench\/(results|launches)\.hpp)/ { parses[FILENAME] = 1 }
/^namespace \{/ { hidden = 1; next }
/^\}  \/\/ namespace$/ { hidden = 0 }
/^using namespace/ && FILENAME !~ /^tests/ { alone[FILENAME] = 1 }
/^using namespace/ && FILENAME ~ /^tests/ && !/namespace chorale;/ {
  name = $3
  gsub(/^chorale::|;$/, "", name)
  gsub(/::/, "_", name)
  opened[FILENAME] = opened[FILENAME] "_" name
}
hidden && /^[A-Za-z[]/ && !/^[A-Z_]+\(/ {
  note(name_in($0), /^(using|namespace) .*=/ ? $0 : FILENAME)  # identical aliases may repeat
  # constexpr int most = 8, least = 2;
  for (rest = $0; /^constexpr/ && match(rest, /, [a-z_]+ =/); rest = substr(rest, RSTART + RLENGTH))
    note(substr(rest, RSTART + 2, RLENGTH - 4), FILENAME)
}

END {
  for (i = 1; i <= n; ++i) {
    if (files[i] in alone) continue
    if (files[i] ~ /^tests/) read_headers(files[i], files[i])
    kind = kind_of(files[i])
    for (number = 1; number <= count[kind] && !fits(kind "-" number, files[i]);) ++number
    if (number > count[kind]) count[kind] = number
    bundle = kind "-" number
    filled[bundle] += size[files[i]]
    for (k = 1; k <= locals[files[i]]; ++k) taken[bundle, local[files[i], k]] = meaning[files[i], k]
    for (k = 1; k <= sights[files[i]]; ++k) sees[bundle, seen[files[i], k]] = 1
    print bundle ":" files[i]
  }
}
