// A table of measured steps, as a paper prints it: a CSV file whose columns are settings of a run, and measurements. Lines
// that begin with # are remarks. Columns may have other names (table of names in the .cpp file).
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace chorale::plan {

struct PublishedTable {
  std::vector<std::string> settings, measured;      // names of the columns of each kind
  std::vector<std::map<std::string, double>> rows;  // by name, of all columns that are known
};

PublishedTable read_published(const std::filesystem::path& file);

}  // namespace chorale::plan
