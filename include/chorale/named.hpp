// Support for enumerations whose values users write as names. For example, `--optimizer sgd` selects OptimizerKind::sgd. A
// function names_of() beside the enumeration lists the names in the order of the values:
//
//   enum class OptimizerKind : std::uint8_t { adamw, sgd };
//   constexpr auto names_of(OptimizerKind) { return Names{"optimizer", "adamw", "sgd"}; }
//
// A name is converted to a value where the name enters the program: in the option parser, in the reader of a file, or in
// named<OptimizerKind>("sgd"). All other code uses the values and compares no strings. So a misspelled value in source code
// is a compile error.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace chorale {

template <std::size_t count>
struct Names {
  const char* what;  // the kind of value, as error messages call it: "optimizer"
  std::array<const char*, count> names;

  template <class... Name>
  constexpr explicit Names(const char* one_value, Name... name) : what(one_value), names{name...} {}
};
template <class... Name>
Names(const char*, Name...) -> Names<sizeof...(Name)>;

template <class Enum>
concept Named = requires(Enum value) {
  names_of(value).names;
};

// Returns the index of `name`. For an unknown name, throws a usage error that suggests the nearest name.
std::size_t index_of_name(const char* what, std::span<const char* const> names, const std::string& name);

template <Named Enum>
constexpr const char* name_of(Enum value) {
  return names_of(value).names[static_cast<std::size_t>(value)];
}

template <Named Enum>
std::vector<std::string> all_names() {
  constexpr auto all = names_of(Enum{});
  return {all.names.begin(), all.names.end()};
}

template <Named Enum>
Enum named(const std::string& name) {
  constexpr auto all = names_of(Enum{});
  return static_cast<Enum>(index_of_name(all.what, all.names, name));
}

// Returns the table row with this name.
template <class Row>
const Row& row_named(const std::vector<Row>& table, const char* what, const std::string& name) {
  std::vector<const char*> names;
  for (const Row& row : table) names.push_back(row.name);
  return table[index_of_name(what, names, name)];
}

}  // namespace chorale
