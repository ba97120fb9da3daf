// A table that maps the option names of another program, such as Megatron-LM, to Chorale's options. Some names set one of
// Chorale's options. Other names require that an option has, or does not have, a certain value. The remaining names have no
// effect, or are refused with a suggestion.
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

// Returns the option in `options` that corresponds to another program's option `name`. For example, the name "steps"
// corresponds to the option "train-iters". `about` says how the two options differ, or gives an alternative if there is no
// corresponding option. `option` and `about` are "" if no known program uses the name.
struct Familiar {
  std::string option, about;
};
Familiar familiar_name(const std::string& name, const std::vector<std::string>& options);
// Returns the choice that corresponds to another program's value `value`. If no choice corresponds to `value`, returns the
// choice with the most similar spelling, or "" if no choice is similar.
std::string familiar_value(const std::string& value, const std::vector<std::string>& choices);

}  // namespace chorale
