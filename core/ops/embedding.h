// Token and position embeddings.
#pragma once

#include "core/ops/checks.h"
#include "core/ops/dropout_spec.h"

namespace zl {

// out[n,C] = dropout(scale * wte[tokens[i]] + wpe[first_position + i mod sequence]); wpe may be
// absent (RoPE models). tokens: i32[n], each in [0, V); rows of a micro-batch lie one after the
// other. With a vocabulary of V tokens cut over ranks (Megatron-LM's VocabParallelEmbedding) wte
// holds those from first_token on, and a token of another rank counts as a row of zeros.
struct EmbeddingForward {
  static constexpr const char* kName = "embedding_forward";
  TensorView tokens, wte, wpe, out;
  std::int64_t sequence = 0;
  DropoutSpec dropout;
  std::int64_t first_position = 0;          // of a row's first token
  std::int64_t first_token = 0, vocab = 0;  // vocab 0: wte holds the whole vocabulary
  double scale = 1;

  std::int64_t vocabulary() const { return vocab == 0 ? wte.rows() : vocab; }
  void validate() const {
    require(tokens.dtype == DType::i32 && tokens.count() == out.rows(), kName,
            "tokens is i32 with one id per row of out");
    require(wte.columns() == out.columns(), kName, "wte and out have one width");
    require(first_position >= 0, kName, "first_position is at least 0");
    require(
        wpe.empty() || (wpe.columns() == out.columns() && wpe.rows() >= first_position + sequence),
        kName, "wpe has at least first_position + `sequence` rows of the width of out");
  }
  Cost cost() const {
    const std::int64_t per_row = out.bytes() * (wpe.empty() ? 1 : 2);
    return {static_cast<double>(out.count()),
            tokens.bytes() + per_row,
            out.bytes(),
            out.rows(),
            out.columns(),
            1};
  }
  template <class F>
  void visit(F&& f) const {
    f(tokens, Access::read), f(wte, Access::read), f(wpe, Access::read), f(out, Access::write);
  }
};

// dwte[V,C] (+)= scale * scatter-add of dout rows by token; dwpe[T,C] (+)= sum over the batch, at
// the forward's positions. Deterministic: each row of dwte is summed in a fixed order, the tokens'
// (a GPU sums chunks of it first). With accumulate_* false all is overwritten (rows without a token
// become 0). first_token, vocab: as in the forward; tokens of other ranks add nothing to dwte.
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  TensorView tokens, dout, dwte, dwpe;
  std::int64_t sequence = 0;
  DropoutSpec dropout;
  bool accumulate_wte = false, accumulate_wpe = false;
  std::int64_t first_position = 0;
  std::int64_t first_token = 0, vocab = 0;
  double scale = 1;

  std::int64_t vocabulary() const { return vocab == 0 ? dwte.rows() : vocab; }
  void validate() const {
    require(tokens.dtype == DType::i32 && tokens.count() == dout.rows(), kName,
            "tokens is i32 with one id per row of dout");
    require(dwte.columns() == dout.columns(), kName, "dwte and dout have one width");
    require(first_position >= 0, kName, "first_position is at least 0");
    require(dwpe.empty() ||
                (dwpe.columns() == dout.columns() && dwpe.rows() >= first_position + sequence),
            kName, "dwpe has at least first_position + `sequence` rows of the width of dout");
  }
  Cost cost() const {
    return {static_cast<double>(dout.count()) * (dwpe.empty() ? 1 : 2),
            tokens.bytes() + dout.bytes() * (dwpe.empty() ? 1 : 2) +
                (accumulate_wte ? dout.count() * 4 : 0),
            (accumulate_wte ? dout.count() * 4 : bytes_of(dwte)) + bytes_of(dwpe),
            dout.rows(),
            dout.columns(),
            1};
  }
  template <class F>
  void visit(F&& f) const {
    f(tokens, Access::read), f(dout, Access::read);
    f(dwte, accumulate_wte ? Access::read_write : Access::write);
    f(dwpe, accumulate_wpe ? Access::read_write : Access::write);
  }
};

}  // namespace zl
