// A table that maps another program's option names to ours. A name sets one of our options, or requires that one of our
// options has (or does not have) a value. Other names have no effect here, or are refused with a suggestion.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace chorale {

struct Word {
  enum class Means {
    same,     // one of our options has this name or alias and the same meaning
    sets,     // sets our option to the translated value
    expects,  // requires that our option ends up with this value
    differs,  // requires that our option ends up with another value
    nothing,  // has no effect here
    refused
  };
  std::string name;
  Means means;
  std::string option = "";                                       // our option; if empty, `values` lists the accepted values
  std::vector<std::pair<std::string, std::string>> values = {};  // (their value, ours); if empty, values stay unchanged
  std::string about = "";                                        // why the name has no effect, or what to use instead

  bool is_switch() const { return values.size() == 1 && values[0].first == "true"; }
};

// Finds which of these options another program calls `name`: train-iters for the name steps, for example. `about` says how
// the two differ, or what to do instead if no option corresponds. Both are "" if no known program uses the name.
struct Familiar {
  std::string option, about;
};
Familiar familiar_name(const std::string& name, const std::vector<std::string>& options);
// Finds the choice that another program calls `value`, or else the choice with the nearest spelling; "" if none is near.
std::string familiar_value(const std::string& value, const std::vector<std::string>& choices);

}  // namespace chorale
