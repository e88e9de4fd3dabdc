// What the programs of the acceptance run share: their options and the JSON each part writes.
// Ownership: a Report owns its JSON. Threads: used by one thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zl::gpu {

using Json = nlohmann::ordered_json;

struct Options {
  std::string out;                // file of the part's JSON; empty: none
  double budget = 120;            // seconds that the part may take
  std::string zerolab;            // the program `zerolab`
  std::string python;             // a Python with torch; empty: no PyTorch pair
  std::string script;             // pytorch_pair.py
  std::string throughput;         // the JSON that part d wrote, for part f
  std::string nvme_path;          // folder of the files that part f measures; empty: none
  std::string compile = "block";  // torch.compile of the PyTorch pair: block, full or none
  bool quick = false;
  bool tiny = false;  // toy sizes: tries the part itself, measures nothing

  // Where part f writes the measured machine, beside `out`.
  std::string profile() const;
};

class Report {
 public:
  explicit Report(std::string part) : part_(std::move(part)) {}

  Json figures = Json::object(), settings = Json::object();
  std::string summary;  // the readable line, without the verdict

  // The part has failed; every reason is kept.
  void fail(const std::string& why) { failures_.push_back(why); }
  const std::vector<std::string>& failures() const { return failures_; }
  // The part cannot be tried here.
  void skip(const std::string& why) { skipped_ = summary = why; }
  // Adds machine_facts() to the JSON.
  void note_machine();
  Json json(double seconds) const;
  int verdict() const;  // the exit code of the part

 private:
  std::string part_, skipped_;
  Json machine_ = Json::object();
  std::vector<std::string> failures_;
};

// "+1.25 %" of 0.0125.
std::string signed_percent(double share, int digits);

inline constexpr int kSkipped = 5;  // exit code of a part that cannot be tried here

// The main() of a part: parses the command line, runs `body` where there is a usable GPU, writes
// the JSON, prints a line "failure: ..." per failure and the line "summary: ..." and returns 0, 1
// or kSkipped. What `body` throws is a failure of the part.
int run_part(int argc, char** argv, const std::string& part,
             const std::function<void(Report&, const Options&)>& body);

}  // namespace zl::gpu
