#include "scenarios/deepspeed/imported_strategy.h"

namespace zl {

const char* name_of(EffectStatus status) {
  switch (status) {
    case EffectStatus::honoured:
      return "honoured";
    case EffectStatus::defaulted:
      return "defaulted";
    case EffectStatus::not_implemented:
      return "not_implemented";
    case EffectStatus::rejected:
      return "rejected";
  }
  return "?";
}

}  // namespace zl
