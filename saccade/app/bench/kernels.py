"""Where the time goes: the kernels of a run, by what they are for."""

import re

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from saccade.app.bench.timing import Work, wait_for

OTHER = "elementwise and copies"
GROUPS = {  # the first that fits
    "search": r"_advance|_take_top|_look_through|_draw_rows|cumsum|_scan_|argmax|topk",
    "attention": r"attention|fmha|flash|sdpa|softmax|_look_(back|across)",
    "optimizer": r"adam|multi_tensor|foreach|clip_grad|lpnorm",
    "convolution": r"conv|fprop|dgrad|wgrad|winograd|depthwise|cudnn(?!.*gemm)",
    "norm": r"norm|welford|bn_fw|bn_bw",
    "product": r"gem[mv]|nvjet|addmm|::b?mm$|::_?linear|splitk|cublas|matmul|triton_(m|t)|_one_row",
    "pooling": r"pool",
}


def time_by_group(work: Work, device: torch.device) -> dict[str, float]:
    """Milliseconds of one run in each kind of kernel, the most first."""
    gpu = device.type == "cuda"
    wait_for(device)
    activities = [ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]
    with profile(activities=activities, acc_events=True) as seen:
        work()
        wait_for(device)
    found: dict[str, float] = {}
    for row in seen.key_averages():
        if gpu and row.device_type != DeviceType.CUDA:
            continue
        spent = (row.self_device_time_total if gpu else row.self_cpu_time_total) / 1000
        group = group_of(row.key)
        found[group] = found.get(group, 0.0) + spent
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def group_of(kernel: str) -> str:
    """What a kernel is for, by its name."""
    fits = (group for group, known in GROUPS.items() if re.search(known, kernel, re.IGNORECASE))
    return next(fits, OTHER)
