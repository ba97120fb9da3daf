// Reads a record back, trusting nothing: a file that is not ours, of a newer schema, or damaged is refused in words. Rows
// beyond `committed_rows` were not acknowledged before the writer died, and are left out.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/record/h5.hpp"

namespace chorale {

inline constexpr const char* schema_name = "chorale";
inline constexpr std::int64_t schema_version = 1;

struct Variable {
  std::string name;
  std::string units;
  std::vector<std::string> dimensions;
  std::vector<std::int64_t> shape;
  std::vector<std::string> cells;  // row-major, as text; codes with labels as their meaning
};

h5::File open_record_file(const std::filesystem::path& path);       // one of ours, or a usage error
std::vector<std::string> links_in(hid_t group, H5O_type_t wanted);  // names, in the order they were written in
std::string dimension_name(hid_t dataset, unsigned axis);           // of the scale on it; of itself, if it is one

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path);

  std::vector<std::pair<std::string, std::string>> attributes(const std::string& group = "/") const;  // as text
  std::string attribute(const std::string& wanted) const;  // of the root; "" when it has none
  std::vector<std::string> groups() const;                 // those with variables, "/" for the root
  // `most` limits the rows read along the first dimension to the newest; -1 for all.
  std::vector<Variable> variables(const std::string& group, std::int64_t most = -1) const;
  std::int64_t rows(const std::string& group) const;  // committed; -1 when the group is no table

 private:
  std::filesystem::path path_;
  h5::File file_;
};

}  // namespace chorale
