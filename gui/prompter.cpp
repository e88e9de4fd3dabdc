#include "gui/prompter.h"

#include <utility>

#include "core/data/text_stream.h"
#include "gui/units.h"
#include "scenarios/run/generation_run.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/speaker.h"

namespace zl::gui {

Prompter::~Prompter() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void Prompter::start(const PromptRequest& request) {
  if (running_) return;
  if (thread_.joinable()) thread_.join();
  running_ = true;
  stop_ = false;
  thread_ = std::thread([this, request] { work(request); });
}

void Prompter::work(const PromptRequest& request) {
  QString error, summary;
  try {
    summary = generate(request);
    if (stop_) error = tr("cancelled");
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  QMetaObject::invokeMethod(
      this,
      [this, error, summary] {
        running_ = false;
        Q_EMIT finished(error, summary);
      },
      Qt::QueuedConnection);
}

QString Prompter::generate(const PromptRequest& asked) {
  ScenarioOverrides overrides;
  overrides.model = asked.model.toStdString();
  overrides.cluster = "local";
  const Speaker speaker = load_speaker(std::move(overrides));
  GenerationRequest request{.model = speaker.scenario.model,
                            .weights = open_weights(speaker),
                            .seed = speaker.scenario.run.seed,
                            .dtype = speaker.dtype(),
                            .sparse = speaker.sparse};
  request.prompts = {encode_prompt(speaker, asked.prompt.toStdString())};
  request.options.max_tokens = asked.max_tokens;
  request.options.sampling.temperature = asked.temperature;
  request.options.stop = ends_of(speaker);
  request.options.cancel = &stop_;
  TextStream text(*speaker.tokenizer);
  const auto say = [this](const std::string& part) {
    if (part.empty()) return;
    const QString more = QString::fromStdString(part);
    QMetaObject::invokeMethod(
        this, [this, more] { Q_EMIT said(more); }, Qt::QueuedConnection);
  };
  request.options.on_token = [&](int, std::int32_t token) { say(text.push(token)); };
  const Runner runner;
  const auto world = runner.backends().make("cpu", {.ranks = 1});
  const GenerationRun run = run_generation(*world, request);
  say(text.finish());
  const auto tokens = static_cast<double>(run.generated.decoded_tokens);
  return tr("%1 tokens, %2 tokens/s after the first")
      .arg(run.generated.output_tokens)
      .arg(run.decode.seconds > 0 ? tokens / run.decode.seconds : 0, 0, 'f', 1);
}

}  // namespace zl::gui
