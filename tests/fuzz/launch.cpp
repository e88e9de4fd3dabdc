// The variables of launchers, as lines NAME=VALUE, and the host lists in them.
#include "backends/bootstrap/launch.h"

#include <map>
#include <sstream>

#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(launch) {
  std::map<std::string, std::string> variables;
  std::istringstream lines{std::string(zl::fuzz::text_of(data, size))};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
    zl::first_host(line);
  }
  zl::fuzz::takes([&] {
    const auto launch = zl::detect_launch([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
    if (!launch) return;
    const bool right = launch->rank >= 0 && launch->rank < launch->ranks &&
                       launch->local_rank >= 0 && launch->local_ranks <= launch->ranks;
    zl::fuzz::require(right, "a rank that cannot be");
  });
  return 0;
}
