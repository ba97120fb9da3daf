// The output of `chorale plan` for one request consists of sentences and tables, in one of four formats.
//
//   text    the sentences, and the tables under their headings; on a terminal, both fit its width
//   json    one object with the facts, and with each table as an array: {"layout": "dp2", "stages": [{…}], "traffic": […]}
//   csv     the tables; a line with the name precedes each table except the first: # traffic
//   md      the tables; if there are several, each has its name as a heading: ## traffic
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text_table.hpp"

namespace chorale::plan {

class Document {
 public:
  explicit Document(std::string format) : format_(std::move(format)) {}

  // fact() adds an entry to the JSON object. words() adds sentences to the text. A table without rows is left out.
  void fact(const std::string& name, nlohmann::ordered_json value) { facts_[name] = std::move(value); }
  void words(const std::string& words);
  void table(const std::string& name, const TextTable& table);
  std::string print() const;

 private:
  std::string format_, text_;
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
  std::vector<std::pair<std::string, TextTable>> tables_;
};

}  // namespace chorale::plan
