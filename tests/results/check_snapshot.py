"""Opens a memory snapshot as its users do: Python's unpickler and PyTorch's own tools.

    zerolab export tiny-gpt2 --strategy zero-3 --memory-snapshot FILE && python3 check_snapshot.py FILE

With --torch after the file PyTorch's own tools read it too.
"""
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)

live, events = {}, snapshot["device_traces"][0]
peak = now = 0
for event in events:
    if event["action"] == "alloc":
        assert event["addr"] not in live, "a block given out twice"
        live[event["addr"]] = event["size"]
        now += event["size"]
        peak = max(peak, now)
    elif event["action"] == "free_completed":
        assert live.pop(event["addr"]) == event["size"]
        now -= event["size"]
blocks = {}
for segment in snapshot["segments"]:
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at
        at += block["size"]
        if block["state"] == "active_allocated":
            blocks[block["address"]] = block["size"]
    assert at == segment["address"] + segment["total_size"]
assert blocks == live, "what is live at the end is what the segments hold"
print(f"{len(events)} events, peak {peak} bytes, live at the end {now} bytes")

if "--torch" in sys.argv:
    from torch.cuda import _memory_viz

    for view in (_memory_viz.segsum, _memory_viz.trace, _memory_viz.trace_plot):
        assert view(snapshot), view.__name__
    print("PyTorch's segsum, trace and trace_plot read it")
