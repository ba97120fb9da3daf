// The layout that a user asks for. This layout can determine whether another option has an effect: for example, --hpz has no
// effect below ZeRO-3.
//
//   options.add("reducer", reducer, …).only_where("zero 0", layout.zero_at_most(0));
#pragma once
#include <functional>
#include <string>

#include "parallel/layout/layout.hpp"

namespace chorale {

class AskedLayout {
 public:
  using WhyNot = std::function<std::string()>;  // as in Option::only_where

  virtual ~AskedLayout() = default;
  virtual bool all() const = 0;  // whether the user asks for all legal layouts; an option is then valid if it has an effect
                                 // in at least one of them
  virtual Layout asked() const = 0;  // a size of 0 has not been inferred yet

  // Conditions under which an option has an effect. The conditions keep a pointer to this object.
  WhyNot zero_at_most(int stage) const;
  WhyNot zero_3() const;
  WhyNot has_more_than_one(std::int64_t (*ranks)(const Layout&), const char* otherwise) const;
};

}  // namespace chorale
