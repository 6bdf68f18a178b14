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
