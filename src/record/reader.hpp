// Reads a record without trusting it. A file is refused with a reason if Chorale did not write it, if its schema is newer,
// or if it is damaged. Rows beyond the attribute `committed_rows` are skipped, because the writer died before it had
// completed them.
//
// libhdf5 itself crashes on some damaged files. Therefore a child process first reads the complete file. If the child dies,
// the file is refused. Cost: the file is read twice.
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
  std::vector<std::string> cells;  // row-major, as text; integers with labels (flag_meanings) are given as their labels
};

// Opens a record, or throws a usage error if the file is not a readable record. open_record_file() does not first read the
// file in a child process. It must therefore be used only for records that this program wrote or that a Reader has read.
h5::File open_record_file(const std::filesystem::path& path);
std::vector<std::string> links_in(hid_t group, H5O_type_t wanted);  // names of the objects of this type, in creation order
std::string dimension_name(hid_t dataset, unsigned axis);  // name of the scale attached to this axis; for a dataset that is
                                                           // itself a scale, the dataset's name

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path);

  std::vector<std::pair<std::string, std::string>> attributes(const std::string& group = "/") const;  // as text
  std::string attribute(const std::string& wanted) const;  // value of a root attribute; "" if missing
  bool is_number(const std::string& attribute) const;      // whether a root attribute is a number
  std::vector<std::string> groups() const;                 // groups with variables; "/" is the root
  // Reads only the newest `most` rows along the first dimension, or all rows if `most` is -1.
  std::vector<Variable> variables(const std::string& group, std::int64_t most = -1) const;
  std::int64_t rows(const std::string& group) const;  // number of committed rows; -1 if the group is not a table

 private:
  std::filesystem::path path_;
  h5::File file_;
};

}  // namespace chorale
