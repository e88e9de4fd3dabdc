// The values of a DeepSpeed file's keys, typed: as given, as "auto" means, or the key table's
// default. Every value that is asked for leaves its row of effects.
// Ownership: refers to the recorder, which must outlive it. Threads: used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "scenarios/deepspeed/effects.h"

namespace zl {

// What "auto" means for one key; without one, "auto" is the default of the key table.
struct AutoRule {
  double value = 0;
  std::string why;
  bool is_open = false;  // the run that would decide is not known: "auto" stays, `value` stands in
};

class Keys {
 public:
  explicit Keys(Effects& effects) : effects_(effects) {}

  Effects& effects() { return effects_; }
  const GivenKey* given(const std::string& path) const { return effects_.given(path); }
  bool is_set(const std::string& path) const;  // given, neither null nor "auto"

  Json value(const std::string& path, const AutoRule* rule = nullptr);
  bool boolean(const std::string& path);
  std::int64_t integer(const std::string& path, const AutoRule* rule = nullptr);
  double number(const std::string& path, const AutoRule* rule = nullptr);
  std::string text(const std::string& path);
  DType type(const std::string& path, DType fallback);

  // For the lists of fields.h.
  void read(const std::string& path, bool& out) { out = boolean(path); }
  void read(const std::string& path, std::int64_t& out) { out = integer(path); }
  void read(const std::string& path, double& out) { out = number(path); }

 private:
  Effects& effects_;
};

// A visitor for the lists of fields.h: reads the keys below `section` into their members.
inline auto reading(Keys& keys, const std::string& section) {
  return [&keys, section](const char* name, auto& member) { keys.read(section + name, member); };
}

// Whether `name` is one of `list`, which is separated by spaces.
bool lists(std::string_view list, std::string_view name);

// Rejects the given keys below `section` that are not in the list of what `owner` takes.
void reject_others(Keys& keys, std::string_view section, std::string_view list,
                   const std::string& owner);

}  // namespace zl
