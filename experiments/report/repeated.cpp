#include "experiments/report/repeated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace chorale::report {
namespace {

std::filesystem::path true_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  return error ? std::filesystem::path(file) : path;
}

bool same_bytes(const std::string& one, const std::string& other) {
  std::error_code error;
  if (std::filesystem::file_size(one, error) != std::filesystem::file_size(other, error) || error) return false;
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(a), {}, std::istreambuf_iterator<char>(b), {});
}

// "the same file as" or "a copy of" if both files record the same run, otherwise "". Records of two runs never have equal
// bytes, because each run has a different id.
std::string how_equal(const std::string& one, const std::string& other) {
  if (true_path(one) == true_path(other)) return "the same file as";
  return same_bytes(one, other) ? "a copy of" : "";
}

}  // namespace

void leave_out_repeated(std::vector<std::string>& files) {
  std::vector<std::string> kept;
  for (const std::string& file : files) {
    std::string how;
    const auto first =
        std::ranges::find_if(kept, [&](const std::string& other) { return !(how = how_equal(file, other)).empty(); });
    if (first == kept.end())
      kept.push_back(file);
    else
      fmt::print(stderr, "left out: {}, {} {}\n", file, how, *first);
  }
  files = kept;
}

std::string how_equal(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return "";
  if (a.size() == 1) return how_equal(a[0], b[0]);
  const auto is_in_b = [&](const std::string& one) {
    return std::ranges::any_of(b, [&](const std::string& other) { return !how_equal(one, other).empty(); });
  };
  return std::ranges::all_of(a, is_in_b) ? "the same records as" : "";
}

}  // namespace chorale::report
