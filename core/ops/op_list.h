// The ops by name, the only such list: what has something for each of them (a declaration, an
// overload) makes it with ZL_OPS. Ownership: none. Threads: none.
#pragma once

// Appended to, never reordered: the place is the `kind` of trace events and of calibration files.
#define ZL_OPS(X)       \
  X(Gemm)               \
  X(BiasBackward)       \
  X(EmbeddingForward)   \
  X(EmbeddingBackward)  \
  X(NormForward)        \
  X(NormBackward)       \
  X(Rope)               \
  X(AttentionForward)   \
  X(AttentionBackward)  \
  X(ActivationForward)  \
  X(ActivationBackward) \
  X(CrossEntropy)       \
  X(Sum)                \
  X(Fill)               \
  X(Axpy)               \
  X(Dropout)            \
  X(RandomNormal)       \
  X(AbsMax)             \
  X(SquaredSum)         \
  X(AdamStep)           \
  X(SgdStep)            \
  X(LambUpdate)         \
  X(LambApply)          \
  X(SignCompress)       \
  X(SignAverage)        \
  X(SignUnpack)         \
  X(MomentumStep)       \
  X(FrozenAdamStep)     \
  X(LocalAdamStep)      \
  X(DenominatorScale)   \
  X(SharedAdamStep)     \
  X(OnebitLambUpdate)   \
  X(OnebitLambTrust)    \
  X(ScaledStep)         \
  X(BlockQuantize)      \
  X(BlockDequantize)    \
  X(BlockSum)           \
  X(ClipFactor)         \
  X(LogitStatistics)    \
  X(HeadNormForward)    \
  X(HeadNormBackward)   \
  X(CopyColumns)
