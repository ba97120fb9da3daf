// A table that maps the option names of a different program to Chorale's options. Some names set one of Chorale's options.
// Some names require that an option has, or does not have, a certain value. All other names have no effect, or are refused
// with a suggestion.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace chorale {

struct Word {
  enum class Means {
    same,     // one of Chorale's options has this name or alias and the same meaning
    sets,     // sets Chorale's option to the translated value
    expects,  // requires that Chorale's option ends up with this value
    differs,  // requires that Chorale's option ends up with a different value
    nothing,  // has no effect in Chorale
    refused
  };
  std::string name;
  Means means;
  std::string option = "";                                       // Chorale's option; if empty, `values` lists the accepted
                                                                 // values
  std::vector<std::pair<std::string, std::string>> values = {};  // (the other program's value, Chorale's value); if empty,
                                                                 // values stay unchanged
  std::string about = "";                                        // why the name has no effect, or what to use instead

  bool is_switch() const { return values.size() == 1 && values[0].first == "true"; }
};

// Returns which of these options a different program calls `name`: for example, train-iters for the name steps. `about` says
// how the two options differ, or gives an alternative if no option corresponds. `option` and `about` are "" if no known
// program uses the name.
struct Familiar {
  std::string option, about;
};
Familiar familiar_name(const std::string& name, const std::vector<std::string>& options);
// Returns the choice that a different program calls `value`, or else the choice with the nearest spelling. Returns "" if no
// choice is near.
std::string familiar_value(const std::string& value, const std::vector<std::string>& choices);

}  // namespace chorale
