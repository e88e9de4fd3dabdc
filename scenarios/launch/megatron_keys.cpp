#include "scenarios/launch/megatron_keys.h"

namespace zl {
namespace {

using Fate = ForeignGroup::Fate;

constexpr ForeignGroup kMegatronGroups[] = {
    {Fate::applied,
     "--tensor-model-parallel-size --sequence-parallel --tp-comm-overlap "
     "--pipeline-model-parallel-size "
     "--num-virtual-stages-per-pipeline-rank --num-layers-per-virtual-pipeline-stage "
     "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
     "--micro-batch-size --global-batch-size --use-distributed-optimizer --use-megatron-fsdp "
     "--data-parallel-sharding-strategy --use-torch-fsdp2 "
     "--torch-fsdp2-no-reshard-after-forward --num-distributed-optimizer-instances "
     "--overlap-grad-reduce --overlap-param-gather --ddp-bucket-size --recompute-granularity "
     "--recompute-method --recompute-num-layers --recompute-modules --recompute-activations "
     "--bf16 --fp16 --grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32 --loss-scale "
     "--initial-loss-scale --min-loss-scale --loss-scale-window --hysteresis --optimizer "
     "--sgd-momentum --adam-beta1 --adam-beta2 --adam-eps --lr --lr-decay-style --lr-decay-iters "
     "--lr-warmup-iters "
     "--lr-warmup-fraction --lr-warmup-init --min-lr --weight-decay "
     "--clip-grad --optimizer-cpu-offload --optimizer-offload-fraction "
     "--use-precision-aware-optimizer --use-custom-fsdp --nproc-per-node --nnodes",
     ""},
    {Fate::of_model,
     "--num-layers --decoder-num-layers --hidden-size --num-attention-heads --num-query-groups "
     "--group-query-attention --ffn-hidden-size --kv-channels --hidden-dropout "
     "--attention-dropout --norm-epsilon --apply-layernorm-1p --disable-bias-linear "
     "--add-qkv-bias --normalization --qk-layernorm --init-method-std --window-size "
     "--window-attn-skip-freq --max-position-embeddings --position-embedding-type "
     "--use-rotary-position-embeddings --rotary-base --rotary-percent --rotary-interleaved "
     "--rotary-seq-len-interpolation-factor --use-rope-scaling --rope-scaling-factor "
     "--no-position-embedding --make-vocab-size-divisible-by --swiglu --openai-gelu "
     "--squared-relu --quick-geglu --untie-embeddings-and-output-weights --vocab-size "
     "--padded-vocab-size --attention-softmax-in-fp32 --apply-query-key-layer-scaling "
     "--embedding-init-method-std --init-method-xavier-uniform",
     "of the model, which --model says"},
    {Fate::moot,
     "--seq-length --train-iters --train-samples --seed --eval-iters --eval-interval "
     "--data-path --split --exit-interval --exit-duration-in-mins",
     "of the run, which its own options say"},
    {Fate::moot,
     "--lr-wsd-decay-style --lr-decay-samples --lr-wsd-decay-iters "
     "--lr-wsd-decay-samples --lr-warmup-samples "
     "--override-opt_param-scheduler --override-opt-param-scheduler "
     "--use-checkpoint-opt_param-scheduler --use-checkpoint-opt-param-scheduler "
     "--start-weight-decay --end-weight-decay --weight-decay-incr-style --warmup "
     "--decoupled-lr --decoupled-min-lr",
     "the learning rate does not follow it; add a scheduler to the strategy"},
    {Fate::moot,
     "--attention-backend --transformer-impl --use-mcore-models --use-flash-attn "
     "--no-masked-softmax-fusion --no-bias-gelu-fusion --no-bias-swiglu-fusion "
     "--no-bias-dropout-fusion --no-rope-fusion --no-persist-layer-norm "
     "--no-gradient-accumulation-fusion --disable-jit-fuser --cross-entropy-loss-fusion "
     "--cross-entropy-fusion-impl --high-priority-stream-groups "
     "--no-async-tensor-model-parallel-allreduce "
     "--disable-async-tensor-model-parallel-allreduce --tp-comm-overlap-cfg "
     "--tp-comm-bootstrap-backend --no-overlap-p2p-communication "
     "--overlap-p2p-communication-warmup-flush --no-scatter-gather-tensors-in-pipeline "
     "--no-align-grad-reduce --no-align-param-gather --ddp-pad-buckets-for-high-nccl-busbw "
     "--ddp-average-in-collective --no-gradient-reduce-div-fusion --use-nccl-ub --use-sharp "
     "--nccl-communicator-config-path --distributed-backend --distributed-timeout-minutes "
     "--manual-gc --manual-gc-interval --use-cpu-initialization --init-model-with-meta-device "
     "--no-initialization --deterministic-mode --cuda-graph-impl --enable-cuda-graph "
     "--external-cuda-graph --cuda-graph-warmup-steps --defer-embedding-wgrad-compute "
     "--wgrad-deferral-limit --fsdp-double-buffer --suggested-communication-unit-size "
     "--overlap-cpu-optimizer-d2h-h2d --use-torch-optimizer-for-cpu-offload --te-rng-tracker "
     "--data-parallel-random-init --no-check-for-nan-in-loss-and-grad --check-for-large-grads "
     "--calculate-per-token-loss --local-rank --lazy-mpu-init --disable-gloo-process-groups "
     "--ddp-num-buckets --onnx-safe --empty-unused-memory-level "
     "--disable-bf16-reduced-precision-matmul",
     "how the same is computed and sent; the profile of --software says how fast"},
    {Fate::moot, "--rdzv-* --node-rank --master-addr --master-port --max-restarts --standalone",
     "of the launcher"},
    {Fate::moot,
     "--save --save-interval --persistent-save-interval --save-wgrads-interval "
     "--save-dgrads-interval --save-retain-interval --load --load-main-params-from-ckpt "
     "--non-persistent-* --finetune --pretrained-checkpoint --ckpt-* "
     "--use-mp-args-from-checkpoint-args --no-use-tokenizer-model-from-checkpoint-args "
     "--disable-use-tokenizer-model-from-checkpoint-args --exit-* --auto-detect-ckpt-format "
     "--no-ckpt-fully-parallel-save --disable-ckpt-fully-parallel-save --async-save "
     "--use-persistent-ckpt-worker --no-strict-fsdp-dtensor-load "
     "--disable-strict-fsdp-dtensor-load --dist-ckpt-* "
     "--distrib-optim-fully-reshardable-mem-efficient --replication --replication-jump "
     "--replication-factor --no-save-optim --no-save-rng --no-load-optim --no-load-rng "
     "--use-dist-ckpt --log-* --timing-log-level --timing-log-option --tensorboard-* "
     "--no-log-loss-scale-to-tensorboard --disable-log-loss-scale-to-tensorboard "
     "--no-barrier-with-level-1-timing --wandb-* --logging-level --profile "
     "--profile-step-start --profile-step-end --use-pytorch-profiler --profile-ranks "
     "--record-memory-history --memory-snapshot-path --phase-transition-iterations "
     "--train-data-path --valid-data-path --test-data-path --data-args-path "
     "--per-split-data-args-path --per-dataset-sequences-path --dataloader-fast-cache-load "
     "--dataloader-defer-npy-index-mmap --data-cache-path --no-mmap-bin-files --mock-data "
     "--encoder-seq-length --decoder-seq-length --sample-rate --mask-prob --short-seq-prob "
     "--num-workers --reset-position-ids --reset-attention-mask --eod-mask-loss "
     "--no-create-attention-mask-in-dataloader --num-dataset-builder-threads "
     "--object-storage-cache-path --mid-level-dataset-surplus --allow-ambiguous-pad-tokens "
     "--fim-* --vocab-file --merge-file --vocab-extra-ids --tokenizer-type --tokenizer-model "
     "--tokenizer-metadata --tokenizer-special-tokens --legacy-tokenizer --tiktoken-* "
     "--tokenizer-sentencepiece-legacy --tokenizer-hf-use-fast "
     "--tokenizer-hf-include-special-tokens --trust-remote-code --adlr-autoresume "
     "--adlr-autoresume-interval --skip-train --test-mode --full-validation "
     "--multiple-validation-sets --straggler-ctrlr-port --straggler-minmax-count "
     "--disable-straggler-on-startup --no-one-logger --one-logger-* --app-tag-run-name "
     "--app-tag-run-version --inprocess-* --enable-ft-package --calc-ft-timeouts "
     "--ft-num-warmup-iters --error-injection-rate --error-injection-type --rerun-mode "
     "--check-for-spiky-loss --run-workload-inspector-server --disable-msc",
     "data, checkpoints and logs; zerolab has its own"},
    {Fate::moot,
     "--fp8-recipe --fp8-margin --fp8-interval --fp8-amax-history-len --fp8-amax-compute-algo "
     "--fp4-recipe",
     "a detail of --fp8-format"},
    {Fate::not_implemented,
     "--context-parallel-size --hierarchical-context-parallel-sizes --hybrid-context-parallel "
     "--expert-model-parallel-size --expert-tensor-parallel-size --num-experts",
     "parallelism over the sequence or the experts"},
    {Fate::not_implemented,
     "--pipeline-model-parallel-layout --decoder-first-pipeline-num-layers "
     "--decoder-last-pipeline-num-layers",
     "stages of unequal layers; write x-zerolab.parallel.layers_per_stage into a strategy"},
    {Fate::not_implemented, "--fp8-format --fp4-format --fp8-param-gather --fp4-param-gather",
     "eight and four bit numbers"},
    {Fate::not_implemented, "--rampup-batch-size",
     "a batch that grows; import the one that it ends with"},
    {Fate::not_implemented,
     "--cpu-offloading-num-layers --fine-grained-activation-offloading "
     "--distribute-saved-activations --outer-dp-sharding-strategy",
     "it is not among what a strategy can offload or keep in parts",
     "false 0 1 none None null uniform no_shard"},
    {Fate::not_implemented,
     "--main-grads-dtype --main-params-dtype --exp-avg-dtype --exp-avg-sq-dtype",
     "states in fewer bits than 32", "false 0 1 none None null fp32"},
    {Fate::not_implemented, "--microbatch-group-size-per-virtual-pipeline-stage",
     "another micro-batch group than the pipeline's ranks"},
    {Fate::not_implemented,
     "--multi-latent-attention --mtp-num-layers --is-hybrid-model --hybrid-override-pattern "
     "--heterogeneous-layers-config-path --moe-*",
     "another model than a dense decoder"},
    {Fate::not_implemented, "--muon-*", "an optimizer of its own kind"},
    {Fate::not_implemented, "--yaml-cfg --use-checkpoint-args",
     "values that come from another file"},
    {Fate::not_implemented,
     "--ddp-reduce-scatter-with-fp32-accumulation --fp32-residual-connection "
     "--overlap-param-gather-with-optimizer-step --apply-wd-to-qk-layernorm",
     "it accumulates otherwise"},
};

}  // namespace

std::span<const ForeignGroup> megatron_groups() { return kMegatronGroups; }

bool megatron_makes_strategy_of(std::string_view key) {
  return has_word(kMegatronGroups[0].keys, ' ', key);
}

}  // namespace zl
