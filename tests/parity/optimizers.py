"""Optimizers that torch.optim has not, from their papers, in the arithmetic of the tensors given.

Each takes a dictionary of weights (a parameter is a tensor of that dictionary), and one gradient of
every weight, or one a rank where ranks exchange something else than gradients.
"""
import torch


class Lamb:
    """You et al. 2020, algorithm 2: the trust ratio is clamped, and 1 where a norm is 0."""

    def __init__(self, weights, lr, betas, epsilon, decay, trust=(0.01, 10.0)):
        self.weights, self.lr, self.betas, self.epsilon = weights, lr, betas, epsilon
        self.decay, self.trust, self.steps = decay, trust, 0
        self.m = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.v = {name: torch.zeros_like(w) for name, w in weights.items()}

    def step(self, gradients):
        self.steps += 1
        beta1, beta2 = self.betas
        for name, weight in self.weights.items():
            gradient, m, v = gradients[name], self.m[name], self.v[name]
            m.mul_(beta1).add_(gradient, alpha=1 - beta1)
            v.mul_(beta2).add_(gradient.square(), alpha=1 - beta2)
            mean, variance = m / (1 - beta1**self.steps), v / (1 - beta2**self.steps)
            update = mean / (variance.sqrt() + self.epsilon) + self.decay * weight
            norm, update_norm = weight.norm().item(), update.norm().item()
            ratio = 1.0
            if norm > 0 and update_norm > 0:
                ratio = min(max(norm / update_norm, self.trust[0]), self.trust[1])
            weight.sub_(self.lr * ratio * update)


class CompressedAverage:
    """Tang et al. 2021, section 4: every rank says the signs of what it has and one scale; the rank
    that owns a chunk averages them and says the same of its chunk. What was not said is kept on both
    sides and said later. `keeps_*` False leaves an error feedback out: a wrong algorithm, to see how
    far it is from the right one."""

    def __init__(self, weights, ranks, keeps_worker=True, keeps_server=True):
        self.ranks, self.keeps_worker, self.keeps_server = ranks, keeps_worker, keeps_server
        self.worker = [{name: torch.zeros_like(w).flatten() for name, w in weights.items()}
                       for _ in range(ranks)]
        self.server = {name: torch.zeros_like(w).flatten() for name, w in weights.items()}

    @staticmethod
    def said(x):
        scale = x.norm() / x.numel() ** 0.5
        return torch.where(x >= 0, scale, -scale)

    def __call__(self, name, tensors):
        messages = []
        for error, tensor in zip(self.worker, tensors):
            whole = error[name] + tensor.flatten()
            messages.append(self.said(whole))
            if self.keeps_worker:
                error[name] = whole - messages[-1]
        average = sum(messages) / self.ranks + self.server[name]
        chunk = -(-average.numel() // self.ranks)
        parts = [self.said(part) for part in average.split(chunk)]
        result = torch.cat(parts)
        if self.keeps_server:
            self.server[name] = average - result
        return result.view_as(tensors[0])


class OnebitAdam:
    """Tang et al. 2021, algorithm 1, with AdamW's decay and bias corrections, the second moment's as
    of its last update."""

    def __init__(self, weights, ranks, lr, betas, epsilon, decay, freeze_step, **feedback):
        self.weights, self.lr, self.betas, self.epsilon = weights, lr, betas, epsilon
        self.decay, self.freeze_step, self.steps = decay, freeze_step, 0
        self.m = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.v = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.average = CompressedAverage(weights, ranks, **feedback)

    def frozen(self):
        return self.steps >= self.freeze_step

    def step(self, gradients):
        """gradients: of each rank."""
        is_frozen = self.frozen()
        self.steps += 1
        beta1, beta2 = self.betas
        bias1 = 1 - beta1**self.steps
        bias2 = 1 - beta2**min(self.steps, self.freeze_step)
        for name, weight in self.weights.items():
            of_ranks = [each[name] for each in gradients]
            if is_frozen:
                momenta = [beta1 * self.m[name] + (1 - beta1) * g for g in of_ranks]
                self.m[name] = self.average(name, momenta)
            else:
                gradient = sum(of_ranks) / len(of_ranks)
                self.m[name] = beta1 * self.m[name] + (1 - beta1) * gradient
                self.v[name] = beta2 * self.v[name] + (1 - beta2) * gradient.square()
            denominator = (self.v[name] / bias2).sqrt() + self.epsilon
            weight.mul_(1 - self.lr * self.decay)
            weight.sub_(self.lr / bias1 * self.m[name] / denominator)
