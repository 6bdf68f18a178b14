import shape_checks

shape_checks.install()  # before any test imports what it checks

import torch  # noqa: E402

torch.set_num_threads(1)
