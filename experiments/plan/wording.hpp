// Formats the cells of a table in two ways: as words for people, and as plain values for programs. The names of plain
// columns contain the unit.
//
//             text, md     csv, json
//   column    peak         peak_bytes
//   bytes     1.5 MiB      1572864
//   seconds   0.1234       0.12341
//   share     49.5 %       0.495
#pragma once
#include <cstdint>
#include <string>

namespace chorale::plan {

class Wording {
 public:
  explicit Wording(const std::string& format) : plain_(format == "csv" || format == "json") {}
  bool plain() const { return plain_; }  // whether the table is for programs

  std::string column(const std::string& name, const std::string& unit = "") const;
  std::string bytes(std::int64_t bytes) const;                // −1: unknown
  std::string seconds(double seconds, int digits = 4) const;  // "" below 0: unknown
  std::string share(double share) const;                      // a fraction, such as 0.495
  std::string number(double value, int digits = 4) const;

 private:
  bool plain_;
};

std::string words_for_bytes(double bytes);  // "1.5 KiB", with three digits; "?" for negative values, which mean unknown

// A rank that needs at least this share of its memory can fail although its plan fits, because libraries and fragmentation
// take memory that the plan does not count.
inline constexpr double tight_share = 0.9;
std::string words_for_room(double needed,
                           double memory);  // "a rank needs 61 GiB of 74.5 GiB, 82 %", and a remark if memory is tight

}  // namespace chorale::plan
