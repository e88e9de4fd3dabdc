#include "gui/models/op_names.h"

#include <QHash>
#include <QObject>
#include <string_view>

#include "core/ops/op_fwd.h"

namespace zl::gui {
namespace {

struct Weight {
  std::int64_t out = 0, in = 0;
  QString name;
};

// The four products of a block.
std::vector<Weight> weights_of(const ModelConfig& model) {
  const bool gated = is_gated(model.activation);
  return {{model.qkv_width(), model.hidden, "qkv"},
          {model.hidden, model.attention_width(), "attention out"},
          {model.ffn_in_width(), model.hidden, gated ? "mlp up and gate" : "mlp up"},
          {model.hidden, model.ffn, "mlp down"}};
}

class Namer {
 public:
  Namer(const ModelConfig& model, std::int64_t rows)
      : model_(model), rows_(rows), weights_(weights_of(model)) {}

  QString operation(const TraceEvent& event) {
    enter(event.scope);
    if (event.type != EventType::op) return moved(event);
    const std::string_view kind = op_name(event.kind);
    if (kind == "gemm") return product(event);
    if (kind == "norm_forward" || kind == "norm_backward") return norm(kind == "norm_backward");
    if (kind == "bias_backward") return bias(event);
    return plain(kind);
  }

  QString layer(const TraceEvent& event) const {
    const int unit = event.scope.unit;
    if (unit < 0) return {};
    if (unit == 0) return QObject::tr("embedding");
    if (unit > model_.layers) return QObject::tr("head");
    return QObject::tr("block %1").arg(unit);
  }

 private:
  // Collectives of a bucket or a prefetch come in the middle of a visit.
  void enter(const Scope& scope) {
    if (scope.phase == Phase::reduce || scope.phase == Phase::gather) return;
    if (scope.unit != unit_ || scope.phase != phase_) norms_ = 0;
    unit_ = scope.unit;
    phase_ = scope.phase;
  }

  static QString moved(const TraceEvent& event) {
    const std::string name = short_name(event);
    if (name == "host_to_device") return QObject::tr("copy to the device");
    if (name == "device_to_host") return QObject::tr("copy to the host");
    if (name == "file_to_host") return QObject::tr("read of a file");
    if (name == "host_to_file") return QObject::tr("write of a file");
    return QString::fromStdString(name);
  }

  bool is_head() const { return unit_ > model_.layers; }

  // The name of the weight with these sides; empty: none.
  QString weight(std::int64_t out, std::int64_t in) const {
    if (is_head())
      return out >= model_.vocab && in == model_.hidden ? QString("logits") : QString();
    for (const Weight& each : weights_) {
      if (each.out == out && each.in == in) return each.name;
    }
    return {};
  }

  // Forward [rows, out] = [rows, in] W'; gradients [out, in] = dY' X over the rows and [rows, in] =
  // dY W.
  QString product(const TraceEvent& event) const {
    const bool backward =
        phase_ == Phase::backward || phase_ == Phase::weight_gradient || is_head();
    if (backward) {
      QString name = weight(event.m, event.n);
      if (!name.isEmpty() && (event.k == rows_ || is_head())) {
        return QObject::tr("%1, weight gradient").arg(name);
      }
      name = weight(event.k, event.n);
      if (!name.isEmpty()) return QObject::tr("%1, input gradient").arg(name);
    }
    const QString name = weight(event.n, event.k);
    return name.isEmpty() ? QString::fromStdString(short_name(event)) : name;
  }

  // A block's first one comes last in the backward.
  QString norm(bool backward) {
    ++norms_;
    if (is_head()) {
      return backward ? QObject::tr("final norm backward") : QObject::tr("final norm");
    }
    const int number = backward ? 3 - norms_ : norms_;
    if (number < 1 || number > 2) return backward ? QObject::tr("norm backward") : "norm";
    return backward ? QObject::tr("norm %1 backward").arg(number)
                    : QObject::tr("norm %1").arg(number);
  }

  QString bias(const TraceEvent& event) const {
    for (const Weight& each : weights_) {
      // Of two with the same width the products beside it say which.
      if (each.out == event.n && each.out != model_.hidden) {
        return QObject::tr("%1, bias gradient").arg(each.name);
      }
    }
    return QObject::tr("bias gradient");
  }

  static QString plain(std::string_view kind) {
    if (kind == "attention_forward") return "attention";
    if (kind == "activation_forward") return "mlp activation";
    if (kind == "activation_backward") return "mlp activation backward";
    if (kind == "embedding_forward") return "embedding";
    if (kind == "squared_sum") return "gradient norm";
    return QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size())).replace('_', ' ');
  }

  const ModelConfig& model_;
  std::int64_t rows_ = 0;
  std::vector<Weight> weights_;
  int unit_ = -2, norms_ = 0;
  Phase phase_ = Phase::other;
};

}  // namespace

OpNames::OpNames(const Trace& trace, const ModelConfig& model, std::int64_t rows) {
  Namer namer(model, rows);
  QHash<QString, std::uint32_t> known;
  const auto number = [&](const QString& name) {
    const auto found = known.constFind(name);
    if (found != known.constEnd()) return *found;
    names_.push_back(name);
    return *known.insert(name, static_cast<std::uint32_t>(names_.size() - 1));
  };
  const std::uint32_t none = number({});
  for (const TraceEvent& event : trace.events()) {
    const bool named = takes_time(event);
    operation_.push_back(named ? number(namer.operation(event)) : none);
    layer_.push_back(named ? number(namer.layer(event)) : none);
  }
}

QString OpNames::whole(std::int32_t event) const {
  const QString& where = layer(event);
  return where.isEmpty() ? operation(event) : operation(event) + ", " + where;
}

}  // namespace zl::gui
