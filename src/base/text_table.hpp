// A table of text cells that can be printed in four formats: aligned text for a terminal, CSV for spreadsheets, JSON (an
// array of objects) for programs, and Markdown for notes.
//
//    bytes  time                       A text table that is wider than the screen continues below itself.
//             us   ← units()           The continuation repeats the leading columns that identify the rows.
//       64   1.5                       A last cell that is still too wide is broken between words.
//     4096   2.1
#pragma once
#include <string>
#include <vector>

#include "src/base/screen.hpp"

namespace chorale {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void units(std::vector<std::string> units) { units_ = std::move(units); }  // adds a second line of headings
  void add(std::vector<std::string> cells);

  static const std::vector<std::string>& formats();  // text, csv, json, md
  // `columns` is the width that the text must fit, or 0 if there is no limit.
  std::string print(const std::string& format, std::size_t columns = screen_columns()) const;
  std::string html() const;  // a <table> for the report

  std::size_t rows() const { return rows_.size(); }

 private:
  std::string text(std::size_t columns) const;
  std::string csv() const;
  std::string json() const;
  std::string md() const;

  std::vector<std::string> columns_, units_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace chorale
