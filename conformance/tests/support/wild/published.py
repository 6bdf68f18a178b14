"""Sound code of a library that reads a field of its configuration when it is called."""

from torch import nn


class Published(nn.Module):
    """Reads the name of an activation when it is built, and another field when it is called."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)
        known = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}
        self.activation = known[config.hidden_act]

    def forward(self, hidden_states):
        assert self.config._attn_implementation == "eager"
        return self.outer(self.activation(self.inner(hidden_states)))


class LayerNormFp32(nn.LayerNorm):
    """Computes in float32, whatever the precision of its input is."""

    def __init__(self, features):
        super().__init__(features)

    def forward(self, x):
        weight, bias = self.weight.float(), self.bias.float()
        found = nn.functional.layer_norm(x.float(), self.normalized_shape, weight, bias, self.eps)
        return found.to(x.dtype)


class BlurredNorm(LayerNormFp32):
    """A mistake: it also forgets its bias."""

    def forward(self, x):
        found = nn.functional.layer_norm(x.float(), self.normalized_shape, self.weight.float())
        return found.to(x.dtype)
