"""One thread, as the trainer's command line has it: results differ in the last bits otherwise."""

import torch

torch.set_num_threads(1)
