# Sorts sources into bundles; each bundle is compiled as one source. Prints a line `bundle:file` for each file.
#
#   awk -v most=70000 -f src/bundles.awk collectives/route.cpp … tests/refused.hpp …       collectives-1:collectives/route.cpp …
#
# The compiler spends most of its time on headers and templates, not on our lines. A bundle reads the headers once for
# up to `most` characters of sources from one folder. Sources that include the JSON or TOML parser, 3 s and more each,
# go into separate bundles. Files that define the same name in anonymous namespaces go into different bundles, so a file
# need not avoid names used elsewhere. A file with `using namespace` is compiled alone, because the other files of a bundle
# would see those names too. Tests may have `using namespace chorale`, and those of all folders share bundles. So a test that
# defines a name that some header declares is compiled alone.
function kind_of(file) {
  match(file, /^src\/[a-z]+/) || match(file, /^[a-z]+/)
  kind = substr(file, 1, RLENGTH)
  if (parses[file]) return (kind ~ /^(experiments|tests)$/ ? kind : "library") "_parsers"
  # Each of these has a namespace named after a function.
  if (file ~ /^collectives\/([a-z_]+\/|algorithms)/ && file !~ /backends|analysis/) kind = "algorithms"
  sub("/", "_", kind)
  return kind
}

# The name that a line at the left margin defines: `constexpr int most = 8;`, `class Picture final : Drawing {`,
# `std::string text_of(int x) {`. Macros such as TEST_CASE( make names of their own.
function name_in(line) {
  sub(/^\[\[[a-z]+\]\] /, "", line)
  gsub(/::/, "", line)
  sub(/ *[({=;:\[].*/, "", line)
  sub(/ final$/, "", line)
  sub(/.*[^A-Za-z0-9_]/, "", line)
  return line
}

function hides_a_declared_name(file,    i) {
  for (i = 1; i <= locals[file]; ++i)
    if (local[file, i] in declared) return 1
  return 0
}

function note(name, means) {
  if (name == "") return
  local[FILENAME, ++locals[FILENAME]] = name
  meaning[FILENAME, locals[FILENAME]] = means
}

function fits(bundle, file,    i) {
  if (filled[bundle] + size[file] > most) return 0
  for (i = 1; i <= locals[file]; ++i)
    if ((bundle, local[file, i]) in taken && taken[bundle, local[file, i]] != meaning[file, i]) return 0
  return 1
}

FILENAME ~ /\.hpp$/ {
  if (/^[A-Za-z[]/ && (name = name_in($0)) != "") declared[name] = 1
  next
}
FNR == 1 { files[++n] = FILENAME; hidden = 0 }
{ size[FILENAME] += length($0) + 1 }
/^#include .*(json\.hpp|toml\.hpp|ds_config\.hpp|bench\/(results|launches)\.hpp)/ { parses[FILENAME] = 1 }
/^namespace \{/ { hidden = 1; next }
/^\}  \/\/ namespace$/ { hidden = 0 }
/^using namespace/ && !(FILENAME ~ /^tests/ && /namespace chorale;/) { alone[FILENAME] = 1 }
hidden && /^[A-Za-z[]/ && !/^[A-Z_]+\(/ {
  note(name_in($0), /^(using|namespace) .*=/ ? $0 : FILENAME)  # identical aliases may repeat
  # constexpr int most = 8, least = 2;
  for (rest = $0; /^constexpr/ && match(rest, /, [a-z_]+ =/); rest = substr(rest, RSTART + RLENGTH))
    note(substr(rest, RSTART + 2, RLENGTH - 4), FILENAME)
}

END {
  for (i = 1; i <= n; ++i) {
    if (files[i] in alone || (files[i] ~ /^tests/ && hides_a_declared_name(files[i]))) continue
    kind = kind_of(files[i])
    for (number = 1; number <= count[kind] && !fits(kind "-" number, files[i]);) ++number
    if (number > count[kind]) count[kind] = number
    bundle = kind "-" number
    filled[bundle] += size[files[i]]
    for (k = 1; k <= locals[files[i]]; ++k) taken[bundle, local[files[i], k]] = meaning[files[i], k]
    print bundle ":" files[i]
  }
}
