// A table of text cells, printed in four formats: aligned for a terminal, CSV for spreadsheets, JSON (an array of
// objects) for programs, Markdown for notes.
#pragma once
#include <string>
#include <vector>

namespace chorale {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);

  static const std::vector<std::string>& formats();  // text, csv, json, md
  std::string print(const std::string& format) const;
  std::string html() const;  // a <table> for the report

  std::size_t rows() const { return rows_.size(); }

 private:
  std::string text() const;
  std::string csv() const;
  std::string json() const;
  std::string md() const;

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace chorale
