// Step two of the DeepSpeed import: checked keys become a Strategy, each with a row of effects.
// Ownership: the builder refers to the keys and the context, which must outlive it.
// Threads: one builder belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/deepspeed/import.h"
#include "scenarios/deepspeed/reading.h"

namespace zl {

// What "auto" means for one key; without one, "auto" is the default of the key table.
struct AutoRule {
  double value = 0;
  std::string why;
};

class DeepSpeedBuilder {
 public:
  DeepSpeedBuilder(const std::vector<GivenKey>& keys, const ImportContext& context);

  ImportedStrategy build(std::string_view source_name);

 private:
  // deepspeed_builder.cpp: values and effect rows
  const GivenKey* given(const std::string& path) const;  // nullptr: absent or rejected
  bool is_set(const std::string& path) const;            // given, neither null nor "auto"
  Json value_of(const std::string& path, const AutoRule* rule = nullptr);
  bool boolean(const std::string& path);
  std::int64_t integer(const std::string& path, const AutoRule* rule = nullptr);
  double number(const std::string& path, const AutoRule* rule = nullptr);
  std::string text(const std::string& path);
  void record(const std::string& path, const Json& effective, EffectStatus status, std::string why);
  void reject(const std::string& path, const std::string& why);
  void refuse(const std::string& path, const std::string& why);
  void mark_unused(std::string_view prefix, const std::string& why);

  // deepspeed_remaining.cpp: the keys that no field of Strategy takes
  void finish_remaining();
  void finish_fixed(const GivenKey& key);
  void finish_detail(const GivenKey& key);

  // deepspeed_sections.cpp
  void build_zero();
  void build_zero_stage();
  void build_quantized();
  void build_stage3();
  std::int64_t sized_by_hidden(const char* name, int power, double factor, const char* formula);
  void build_precision();
  void build_gradients();
  void note_wide_gradients();
  void build_recompute();
  void build_checks();
  DType parse_type(const std::string& path, DType fallback);

  // deepspeed_offload.cpp
  void build_offload();
  Tier tier(const std::string& section, const std::vector<std::string>& old_keys);
  void build_activation_tier();
  void build_host_step();
  void build_parameter_tier();
  void build_aio();

  // deepspeed_batch.cpp: the batch triangle, SPECS 1.2
  void build_batch();

  // deepspeed_optimizer.cpp, deepspeed_schedule.cpp: SPECS 1.6
  void build_optimizer();
  void build_optimizer_params(const std::string& type);
  void read_betas();
  void build_onebit();
  void build_freeze();
  void check_onebit();
  void build_schedule();
  void build_warmup(const std::string& type);
  void build_one_cycle();
  void build_range_test();

  const std::vector<GivenKey>& keys_;
  const ImportContext& context_;
  std::map<std::string, const GivenKey*> by_path_;
  std::map<std::string, Effect> recorded_;
  std::vector<std::string> default_order_;
  ImportedStrategy out_;
};

}  // namespace zl
