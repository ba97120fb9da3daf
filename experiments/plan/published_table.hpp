// A table of measured steps, as printed in a paper. The table is a CSV file with columns for the settings and the
// measurements of a run. Lines that begin with # are remarks. Columns can have alternative names, which the .cpp file lists.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace chorale::plan {

struct PublishedTable {
  std::vector<std::string> settings, measured;      // names of the columns of each kind
  std::vector<std::map<std::string, double>> rows;  // maps column names to values, for all known columns
};

PublishedTable read_published(const std::filesystem::path& file);

}  // namespace chorale::plan
