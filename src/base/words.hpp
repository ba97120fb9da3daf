// The names that another program's users type, for options of ours: a table of them is data. A name sets an option of ours, or states
// what an option of ours must be, or changes nothing here, or is refused with what to use instead.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace chorale {

struct Word {
  enum class Means {
    same,     // an option of ours has this name, or this alias, and the same meaning
    sets,     // the option to the value
    expects,  // that the option has the value when all are set; refused otherwise
    differs,  // expects another value than this
    nothing,  // changes nothing here
    refused
  };
  std::string name;
  Means means;
  std::string option = "";                                       // of ours; with none, `values` are what is taken
  std::vector<std::pair<std::string, std::string>> values = {};  // theirs and ours; empty: any, as it is
  std::string about = "";                                        // why it changes nothing, or what to use instead

  bool is_switch() const { return values.size() == 1 && values[0].first == "true"; }
};

}  // namespace chorale
