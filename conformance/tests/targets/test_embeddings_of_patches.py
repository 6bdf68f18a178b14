"""Classes that embed patches of images are named in a file, and are no question about tokens."""

from user_files import write_files

from attentest.targets.members import members

CODE = """
    import torch
    from torch import nn


    class PatchEmbeddings(nn.Module):
        def __init__(self, config):
            super().__init__()
            size = config["patch_size"]
            self.projection = nn.Conv2d(3, config["hidden_size"], size, size)

        def forward(self, x):
            return self.projection(x).flatten(2).transpose(1, 2)


    class TokensAndPositionEmbedding(nn.Module):
        def __init__(self, num_patches, dim):
            super().__init__()
            self.pos_embed = nn.Parameter(torch.zeros(1, num_patches, dim))

        def forward(self, x):
            return x + self.pos_embed


    class TokenEmbedding(nn.Module):
        def __init__(self, vocab_size, dim):
            super().__init__()
            self.table = nn.Embedding(vocab_size, dim)

        def forward(self, ids):
            return self.table(ids) * 2.0
"""


def test_embeddings_of_patches_are_no_components_and_those_of_tokens_are(tmp_path):
    folder = write_files(tmp_path, patches=CODE)
    found = {one.name: (one.component, one.looks) for one in members(str(folder / "patches.py"))}
    assert found == {
        "PatchEmbeddings": ("", "image"),
        "TokensAndPositionEmbedding": ("", "image"),
        "TokenEmbedding": ("embedding", ""),
    }
